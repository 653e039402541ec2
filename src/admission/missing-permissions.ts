// Rejects a write that grants permissions its caller does not hold, and names the missing ones.

import type { Caller } from '../api/caller.ts'
import { cut, forbidden, isEnough, mostErrors } from '../api/errors.ts'
import type { BoundRules, Decision, Question, RuleLike, Target } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'

export const refusal = ({ kind, next }: GatedWrite, why: string) => forbidden(kind, next.metadata.name ?? '', why)

/** Limits a list to what a person reads. */
export const shown = (lacking: readonly string[]) => [
  ...lacking.slice(0, mostErrors).map(cut),
  ...(isEnough(lacking) ? [`and more`] : []),
]

export const roleTarget = ({ kind, ...ref }: BoundRules['role']): Target => ({
  group: 'rbac.authorization.k8s.io',
  resource: `${kind.toLowerCase()}s`,
  ...ref,
})

export type PermissionDependencies = {
  /** Whether a caller may do something. */
  readonly authorize: (caller: Caller, question: Question) => Decision
  /** Which of these rules the caller does not hold in a namespace, printed (D27). */
  readonly missingRules: (caller: Caller, rules: readonly RuleLike[], namespace: string) => readonly string[]
}

type Wanted = {
  readonly rules: readonly RuleLike[]
  readonly namespace: string
  /** The role that holds the rules; undefined: the caller sent them in this request. */
  readonly source: Target | undefined
}

/** 403 with the missing permissions as Kubernetes prints them, if the caller may know them. */
export function refuseMissing(
  { authorize, missingRules }: PermissionDependencies,
  check: GatedWrite,
  { rules, namespace, source }: Wanted,
): void {
  const { caller } = check.request
  const lacking = missingRules(caller, rules, namespace)
  if (lacking.length === 0) return
  const isKnown = source === undefined || authorize(caller, { verb: 'get', target: source }).allowed
  const what = isKnown ? `\n${shown(lacking).join('\n')}` : ' a role holds permissions that the user does not hold'
  const { username, groups } = caller
  throw refusal(
    check,
    `user "${username}" (groups=[${groups.map(group => JSON.stringify(group)).join(' ')}]) is attempting to grant RBAC permissions not currently held:${what}`,
  )
}
