// SharedSecret: counts the versions of its data and stores earlier ones (D35), and sets its conditions (D23).

import type { Admission } from '../api/admission.ts'
import type { ObjectOf } from '../api/kind.ts'
import { withObserved } from '../kinds/object-conditions.ts'
import { countVersion, previousVersion } from '../kinds/secret-version.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { type RestoreDependencies, restoredVersion } from './restored-version.ts'
import { secretHistory } from './secret-history.ts'
import { type LastReadDependencies, secretLastRead } from './secret-last-read.ts'

type Dependencies = RestoreDependencies & LastReadDependencies & { readonly now: () => number }

export const sharedSecretAdmission = (dependencies: Dependencies): Admission<ObjectOf<typeof SharedSecret>> => ({
  admit: async (next, old, request) => {
    const restored = await restoredVersion(SharedSecret, { next, old }, request, dependencies)
    return { object: countVersion(next, old, { caller: request.caller, now: dependencies.now(), restored }) }
  },
  observe: (next, old) => withObserved(next, old, { now: dependencies.now() }),
  companions: (old, next) => (old ? previousVersion(SharedSecret, old, next) : []),
  subresources: { history: secretHistory(SharedSecret, dependencies), lastread: secretLastRead(dependencies) },
})
