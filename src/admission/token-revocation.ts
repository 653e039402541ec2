// TokenRevocation: sets the default times of a revocation (D33).

import type { Admission } from '../api/admission.ts'
import type { ObjectOf } from '../api/kind.ts'
import { type TokenRevocation, timesOf } from '../kinds/token-revocation.ts'

type Dependencies = { readonly now: () => number }

export const tokenRevocationAdmission = ({ now }: Dependencies): Admission<ObjectOf<typeof TokenRevocation>> => ({
  admit: async (next, old) => ({
    object: old ? next : { ...next, spec: { ...next.spec, ...timesOf(now(), next.spec) } },
  }),
})
