// Aggregated cluster roles: which others one takes its rules from, and what they come to. The authorizer and a controller ask.

import { type FieldError, fieldForbidden, isEnough, notSupported, required } from '../api/errors.ts'
import { emptyMap } from '../api/object.ts'
import type { PolicyRule } from './policy-rule.ts'

type Requirement = {
  readonly key?: string | undefined
  readonly operator?: string | undefined
  readonly values?: readonly string[] | undefined
}
type Selector = {
  readonly matchLabels?: { readonly [key: string]: string } | undefined
  readonly matchExpressions?: readonly Requirement[] | undefined
}
type LabelledRole = {
  readonly rules?: readonly PolicyRule[]
  readonly aggregationRule?: { readonly clusterRoleSelectors?: readonly Selector[] | undefined }
  readonly metadata: { readonly labels?: { readonly [key: string]: string }; readonly name?: string }
}

/**
 * What an aggregated role holds: the rules of every role its selectors pick, each once, in the order of their names.
 * Its own do not count: they are what was written there the last time. A role that is itself aggregated is taken whole.
 */
export function aggregatedRules(role: LabelledRole, all: Iterable<LabelledRole>): readonly PolicyRule[] {
  const others = [...all].sort((one, other) => ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1))
  const found = new Map<string, PolicyRule>()
  const seen = new Set<LabelledRole>()
  const take = (one: LabelledRole): void => {
    if (seen.has(one)) return
    seen.add(one)
    const selectors = one.aggregationRule?.clusterRoleSelectors ?? []
    if (!one.aggregationRule) for (const rule of one.rules ?? []) found.set(JSON.stringify(rule), rule)
    for (const other of others)
      if (selectors.some(selector => selects(selector, other.metadata.labels ?? emptyMap<string>()))) take(other)
  }
  take(role)
  return [...found.values()]
}

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist']

/** What is wrong with an aggregation rule, as Kubernetes sees it. */
export function checkAggregation(rule: LabelledRole['aggregationRule']): FieldError[] {
  const at = 'aggregationRule.clusterRoleSelectors'
  if (!rule) return []
  if (!rule.clusterRoleSelectors?.length)
    return [required(at, 'at least one clusterRoleSelector required if aggregationRule is non-nil')]
  const errors: FieldError[] = []
  for (const [index, { matchExpressions = [] }] of rule.clusterRoleSelectors.entries())
    for (const [place, { operator = '', values = [] }] of matchExpressions.entries()) {
      const field = `${at}[${index}].matchExpressions[${place}]`
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

/** An empty selector picks everything, as everywhere in Kubernetes: whoever writes one has to hold everything. */
function selects(
  { matchLabels = emptyMap<string>(), matchExpressions = [] }: Selector,
  labels: { readonly [key: string]: string },
): boolean {
  const valueAt = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined)
  return (
    Object.entries(matchLabels).every(([key, value]) => valueAt(key) === value) &&
    matchExpressions.every(one => holds(one, valueAt(one.key ?? '')))
  )
}

function holds({ operator, values = [] }: Requirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default:
      return false
  }
}
