// Finds the permissions of some rules that other rules do not cover (D27).

import { pause } from '../../api/time-slices.ts'
import type { Permission, PolicyRule, RuleIndex } from './rbac-rules.ts'

/** A rule stands for the product of its lists, so one write compares a limited number of permissions. */
export const maxPermissions = 100_000

export type Comparison = {
  /** The permissions that may still be compared. */
  budget: { left: number }
  /** Maximum number of missing permissions to find. */
  readonly maxMissing: number
}

/** `isPartial`: the budget did not allow to compare everything. */
export type Missing = { readonly rules: readonly PolicyRule[]; readonly isPartial: boolean }

/** Number of rules or permissions to compare between two checks of the clock. */
const pieceOf = 32

export async function missingRules(
  held: Pick<RuleIndex<unknown>, 'covers' | 'coversRule'>,
  wanted: readonly PolicyRule[],
  { budget, maxMissing }: Comparison,
): Promise<Missing> {
  const rules: PolicyRule[] = []
  let count = 0
  for (const rule of wanted) {
    if (++count % pieceOf === 0) await pause()
    // Most rules are covered by a single one.
    if (held.coversRule(rule)) continue
    for (const permission of permissionsOf(rule)) {
      if (budget.left-- <= 0) return { rules, isPartial: true }
      if (++count % pieceOf === 0) await pause()
      if (!held.covers(permission)) rules.push(asRule(permission))
      if (rules.length >= maxMissing) return { rules, isPartial: false }
    }
  }
  return { rules, isPartial: false }
}

function* permissionsOf(rule: PolicyRule): Iterable<Permission> {
  const names = rule.resourceNames?.length ? rule.resourceNames : [undefined]
  for (const verb of rule.verbs ?? [])
    if (rule.nonResourceURLs?.length) for (const url of rule.nonResourceURLs) yield { verb, url }
    else
      for (const group of rule.apiGroups ?? [])
        for (const resource of rule.resources ?? []) for (const name of names) yield { verb, group, resource, name }
}

function asRule(permission: Permission): PolicyRule {
  if ('url' in permission) return { verbs: [permission.verb], nonResourceURLs: [permission.url] }
  const { verb, group, resource, name } = permission
  return {
    verbs: [verb],
    apiGroups: [group],
    resources: [resource],
    ...(name === undefined ? {} : { resourceNames: [name] }),
  }
}
