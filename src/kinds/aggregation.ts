// Computes the rules of aggregated cluster roles.

import { type FieldError, fieldForbidden, isEnough, notSupported, required } from '../api/errors.ts'
import { emptyMap } from '../api/object.ts'
import { type LabelSelector, matchesLabels } from './label-selector.ts'
import type { PolicyRule } from './policy-rule.ts'

type LabelledRole = {
  readonly rules?: readonly PolicyRule[]
  readonly aggregationRule?: { readonly clusterRoleSelectors?: readonly LabelSelector[] | undefined }
  readonly metadata: { readonly labels?: { readonly [key: string]: string }; readonly name?: string }
}

/** The maximum of rules in a role. */
export const maxRules = 1000
/** The limit of an object (D72). The authorizer uses larger rules, too. */
const maxShownBytes = 1024 * 1024
/** V8 hashes longer strings by their length alone, so a Map of many of them is slow. Such rules may be shown twice. */
const maxComparedLength = 16_383
const encoder = new TextEncoder()

/** The rules that an aggregated role shows: those of its parts, without most duplicates. Undefined: they are too large for an object. */
export function shownRules(role: LabelledRole, all: Iterable<LabelledRole>): readonly PolicyRule[] | undefined {
  const found = new Map<string | PolicyRule, PolicyRule>()
  let size = 0
  for (const rules of aggregatedParts(role, all))
    for (const rule of rules) {
      const text = textOf(rule)
      const key = text.length > maxComparedLength ? rule : text
      if (found.has(key)) continue
      found.set(key, rule)
      size += encoder.encode(text).length
      if (size > maxShownBytes || found.size > maxRules) return undefined
    }
  return [...found.values()]
}

/**
 * The rules of each role that the selectors match, ordered by role name. Ignores the role's own rules, which are the
 * result of an earlier aggregation. Another aggregated role contributes all of its rules.
 */
export function aggregatedParts(role: LabelledRole, all: Iterable<LabelledRole>): readonly (readonly PolicyRule[])[] {
  const others = [...all].sort((one, other) => ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1))
  const parts: (readonly PolicyRule[])[] = []
  const seen = new Set<LabelledRole>()
  const take = (one: LabelledRole): void => {
    if (seen.has(one)) return
    seen.add(one)
    const selectors = one.aggregationRule?.clusterRoleSelectors ?? []
    if (!one.aggregationRule && one.rules) parts.push(one.rules)
    for (const other of others)
      if (selectors.some(selector => matchesLabels(selector, other.metadata.labels ?? emptyMap<string>()))) take(other)
  }
  take(role)
  return parts
}

/** Roles are never changed in place, and any change of a role computes all aggregated roles again. */
const texts = new WeakMap<PolicyRule, string>()

function textOf(rule: PolicyRule): string {
  const text = texts.get(rule) ?? JSON.stringify(rule)
  texts.set(rule, text)
  return text
}

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist']

/** Validates an aggregation rule like Kubernetes does. */
export function checkAggregation(rule: LabelledRole['aggregationRule']): FieldError[] {
  const at = 'aggregationRule.clusterRoleSelectors'
  if (!rule) return []
  if (!rule.clusterRoleSelectors?.length)
    return [required(at, 'at least one clusterRoleSelector required if aggregationRule is non-nil')]
  const errors: FieldError[] = []
  for (const [index, { matchExpressions = [] }] of rule.clusterRoleSelectors.entries())
    for (const [position, { operator = '', values = [] }] of matchExpressions.entries()) {
      const field = `${at}[${index}].matchExpressions[${position}]`
      if (isEnough(errors)) return errors
      if (!operators.includes(operator)) errors.push(notSupported(`${field}.operator`, operator, operators))
      else if (operator.endsWith('In') !== values.length > 0)
        errors.push(
          operator.endsWith('In')
            ? required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")
            : fieldForbidden(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        )
    }
  return errors
}
