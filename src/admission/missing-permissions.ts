// Refuses a write that grants permissions its caller does not hold, and names what is missing.

import { cut, forbidden, isEnough, mostErrors } from '../api/errors.ts'
import type { BoundRules, RuleLike, Target } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'

export const refusal = ({ kind, next }: GatedWrite, why: string) => forbidden(kind, next.metadata.name ?? '', why)

/** As many as a person reads. */
export const shown = (lacking: readonly string[]) => [
  ...lacking.slice(0, mostErrors).map(cut),
  ...(isEnough(lacking) ? [`and more than these ${mostErrors}`] : []),
]

export const roleTarget = ({ kind, ...ref }: BoundRules['role']): Target => ({
  group: 'rbac.authorization.k8s.io',
  resource: `${kind.toLowerCase()}s`,
  ...ref,
})

type Wanted = {
  readonly rules: readonly RuleLike[]
  readonly namespace: string
  /** The role that holds the rules; undefined: the caller sent them in this request. */
  readonly source: Target | undefined
}

/** 403 with the missing permissions as Kubernetes prints them, if the caller may know them. */
export async function refuseMissing(check: GatedWrite, { rules, namespace, source }: Wanted): Promise<void> {
  const { tools } = check
  const lacking = tools.missing(rules, namespace)
  if (lacking.length === 0) return
  const isKnown = source === undefined || (await tools.judge({ verb: 'get', target: source })).allowed
  const what = isKnown ? `\n${shown(lacking).join('\n')}` : ' a role holds permissions that the user does not hold'
  const { username, groups } = tools.caller
  throw refusal(
    check,
    `user "${username}" (groups=[${groups.map(group => JSON.stringify(group)).join(' ')}]) is attempting to grant RBAC permissions not currently held:${what}`,
  )
}
