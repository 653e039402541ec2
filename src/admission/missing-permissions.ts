// Rejects a write that grants permissions its caller does not have, and lists the missing ones.

import type { Caller } from '../api/caller.ts'
import { cut, forbidden, isEnough, maxErrors } from '../api/errors.ts'
import type { BoundRules, Decision, Question, RuleComparison, RuleLike, Target, VerbCheck } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'

export const refusal = ({ kind, next }: GatedWrite, why: string) => forbidden(kind, next.metadata.name ?? '', why)

/** Limits the list to a readable length. */
export const shown = (missing: readonly string[]) => [
  ...missing.slice(0, maxErrors).map(cut),
  ...(isEnough(missing) ? ['and more'] : []),
]

export const roleTarget = ({ kind, ...ref }: BoundRules['role']): Target => ({
  group: 'rbac.authorization.k8s.io',
  resource: `${kind.toLowerCase()}s`,
  ...ref,
})

export type PermissionDependencies = {
  readonly authorize: (caller: Caller, question: Question) => Decision
  /** `authorize` for many verbs on one object. */
  readonly verbCheck: (caller: Caller, target: Target) => VerbCheck
  /** Whether the caller has these rules in a namespace (D27). All calls of one write share a limit. */
  readonly compareRules: RuleComparison
}

type Wanted = {
  readonly rules: readonly RuleLike[]
  readonly namespace: string
  /** The role with the rules; undefined if the caller sent them in this request. */
  readonly source: Target | undefined
}

/** Throws 403 with the missing permissions as Kubernetes prints them, if the caller may see them. */
export async function refuseMissing(
  { authorize, compareRules }: PermissionDependencies,
  check: GatedWrite,
  { rules, namespace, source }: Wanted,
): Promise<void> {
  const { caller } = check.request
  const compared = await compareRules(caller, rules, namespace)
  if (compared.hasAll) return
  const { missing, limit } = compared
  if (missing.length === 0)
    throw refusal(
      check,
      `the write grants too many permissions to compare with those of user "${caller.username}". One write can grant at most ${limit} combinations of verb, group, resource and name; grant fewer at once`,
    )
  const isKnown = source === undefined || authorize(caller, { verb: 'get', target: source }).allowed
  const what = isKnown ? `\n${shown(missing).join('\n')}` : ' a role has permissions that the user does not have'
  const { username, groups } = caller
  throw refusal(
    check,
    `user "${username}" (groups=[${groups.map(group => JSON.stringify(group)).join(' ')}]) is attempting to grant RBAC permissions not currently held:${what}`,
  )
}
