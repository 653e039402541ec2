// ProjectSecret: stores versions of its data (D35), protects the copy of a SharedSecret (D30), and sets its conditions (D23).

import type { Admission, RequestContext } from '../api/admission.ts'
import { systemCaller } from '../api/caller.ts'
import { canonical } from '../api/encode.ts'
import { fieldForbidden, invalid } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { Json } from '../api/object.ts'
import { deliveriesOf, missingKeys } from '../kinds/delivery.ts'
import { withObserved, withRemote } from '../kinds/object-conditions.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { sourceOf, syncManager } from '../kinds/project-secret-source.ts'
import { countVersion, previousVersion } from '../kinds/secret-version.ts'
import { type RestoreDependencies, restoredVersion } from './restored-version.ts'
import { secretHistory } from './secret-history.ts'
import { type LastReadDependencies, secretLastRead } from './secret-last-read.ts'

type Dependencies = RestoreDependencies & LastReadDependencies & { readonly now: () => number }

export const projectSecretAdmission = (dependencies: Dependencies): Admission<ObjectOf<typeof ProjectSecret>> => ({
  admit: async (sent, old, request) => {
    const next = keepCopy(sent, old, request)
    warnOfMissingKeys(next, request)
    const restored = await restoredVersion(ProjectSecret, { next, old }, request, dependencies)
    return { object: countVersion(next, old, { caller: request.caller, now: dependencies.now(), restored }) }
  },
  observe: (next, old) => {
    const now = dependencies.now()
    const isWanted = deliveriesOf(next).length > 0
    return withRemote(withObserved(next, old, { now }), old, { type: 'Delivered', isWanted, now })
  },
  companions: (old, next) => (old ? previousVersion(ProjectSecret, old, next) : []),
  subresources: { history: secretHistory(ProjectSecret, dependencies), lastread: secretLastRead(dependencies) },
})

/** A secret with a source has no data before the first copy. */
function warnOfMissingKeys({ spec = {} }: Secret, { warn }: RequestContext): void {
  if (spec.sharedSecretRef && !spec.data) return
  for (const [index, { keys = [] }] of (spec.deliver ?? []).entries()) {
    const missing = missingKeys(keys, spec.data ?? {})
    if (missing) warn(`spec.deliver[${index}].keys: ${missing}; only the others are delivered`)
  }
}

type Secret = ObjectOf<typeof ProjectSecret>

const isSame = (one: unknown, other: unknown) => canonical((one ?? null) as Json) === canonical((other ?? null) as Json)

/** The server writes the copy. A client may omit it or send it unchanged. */
function keepCopy(next: Secret, old: Secret | undefined, { caller, written }: RequestContext): Secret {
  const source = sourceOf(next)
  if (!source || caller === systemCaller) return next
  const { data: sent, ...spec } = next.spec ?? {}
  const kept = old?.spec?.data
  // A caller who may not see the copy must not be able to guess its values.
  const isGuess = written.some(path => path === 'spec.data' || path.startsWith('spec.data.'))
  if (isGuess || (sent !== undefined && !isSame(sent, kept ?? {})))
    throw invalid(ProjectSecret, next.metadata.name ?? '', [
      fieldForbidden(
        'spec.data',
        `is a copy of SharedSecret ${source.namespace}/${source.name}, managed by ${syncManager}; omit it, or change the SharedSecret`,
      ),
    ])
  return { ...next, spec: kept === undefined ? spec : { ...spec, data: kept } }
}
