// Label selectors of aggregated cluster roles: matchLabels and matchExpressions, all of which must hold.

import { emptyMap } from '../api/object.ts'

type Requirement = {
  readonly key?: string | undefined
  readonly operator?: string | undefined
  readonly values?: readonly string[] | undefined
}
type Selector = {
  readonly matchLabels?: { readonly [key: string]: string } | undefined
  readonly matchExpressions?: readonly Requirement[] | undefined
}

/** An empty selector picks nothing here: a role that took every other's rules by an oversight would be an escalation. */
export function selects(
  { matchLabels = emptyMap<string>(), matchExpressions = [] }: Selector,
  labels: { readonly [key: string]: string },
): boolean {
  const pairs = Object.entries(matchLabels)
  if (pairs.length === 0 && matchExpressions.length === 0) return false
  const valueAt = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined)
  return (
    pairs.every(([key, value]) => valueAt(key) === value) &&
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
