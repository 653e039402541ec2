// Combines the roles of a user into one rule index. Keeps the indexes of large roles, because users can create many of them.

import { indexRules, type PolicyRule, type RuleIndex, type Sourced } from './rbac-rules.ts'

type HeldRole = { readonly parts: readonly (readonly PolicyRule[])[] }

/** Larger roles are not merged. The size of a role is the number of its resources and names. */
const smallRole = 64
/** The total size of the merged roles. */
const maxMerged = 10_000

/** A role is never changed in place, so its index stays valid as long as the role exists. */
const indexes = new WeakMap<readonly PolicyRule[], RuleIndex<undefined>>()

/**
 * One index for all small roles, so that a look-up does not depend on their number. Any change of a role or binding
 * calls this again: large roles must not be indexed again then. A role that is held through many bindings counts once.
 */
export function indexRoles<T extends HeldRole>(roles: Iterable<T>): RuleIndex<T> {
  const seen = new Set<readonly PolicyRule[]>()
  const merged: Sourced<T>[] = []
  const separate: { readonly index: RuleIndex<undefined>; readonly from: T }[] = []
  let left = maxMerged
  for (const role of roles)
    for (const rules of role.parts) {
      if (seen.has(rules)) continue
      seen.add(rules)
      const size = sizeOf(rules)
      if (size <= Math.min(smallRole, left)) {
        left -= size
        for (const rule of rules) merged.push({ rule, from: role })
      } else separate.push({ index: indexOf(rules), from: role })
    }
  const first = indexRules(merged)
  if (separate.length === 0) return first
  return {
    find(question, verb) {
      const found = first.find(question, verb)
      if (found) return found
      for (const { index, from } of separate) {
        const one = index.find(question, verb)
        if (one) return { rule: one.rule, from }
      }
      return undefined
    },
    covers: permission => first.covers(permission) || separate.some(({ index }) => index.covers(permission)),
    coversRule: rule => first.coversRule(rule) || separate.some(({ index }) => index.coversRule(rule)),
  }
}

/** Indexes a large role in advance. */
export function prepareRole(rules: readonly PolicyRule[]): void {
  if (sizeOf(rules) > smallRole) indexOf(rules)
}

function indexOf(rules: readonly PolicyRule[]): RuleIndex<undefined> {
  const known = indexes.get(rules)
  if (known) return known
  const made = indexRules(rules.map(rule => ({ rule, from: undefined })))
  indexes.set(rules, made)
  return made
}

/** Stops counting when a role is large. */
function sizeOf(rules: readonly PolicyRule[]): number {
  let size = 0
  for (const { resources, resourceNames, nonResourceURLs } of rules) {
    size += 1 + (resources?.length ?? 0) + (resourceNames?.length ?? 0) + (nonResourceURLs?.length ?? 0)
    if (size > smallRole) break
  }
  return size
}
