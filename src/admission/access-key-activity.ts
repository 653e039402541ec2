// AccessKeyActivity: records the uses of access keys that gateways report (D19, D33).

import type { Admission } from '../api/admission.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { AccessKeyActivity } from '../kinds/access-key-activity.ts'

type Dependencies = {
  readonly now: () => number
  /** Records uses of access keys. Returns the number of valid keys. */
  readonly touchKeys: (uses: readonly { readonly uid: string; readonly time: number }[]) => number
}

export const accessKeyActivityAdmission = ({
  now,
  touchKeys,
}: Dependencies): Admission<ObjectOf<typeof AccessKeyActivity>> => ({
  answer: async (next, { dryRun }) => {
    // A fast clock must not keep a key alive.
    const uses = (next.spec?.keys ?? []).map(({ uid = '', lastActivity = '' }) => ({
      uid,
      time: Math.min(Date.parse(lastActivity), now()),
    }))
    return { ...next, status: { recorded: dryRun ? 0 : touchKeys(uses) } }
  },
})
