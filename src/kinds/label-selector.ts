// Matches labels against a selector of Kubernetes: matchLabels and matchExpressions.

type Requirement = {
  readonly key?: string | undefined
  readonly operator?: string | undefined
  readonly values?: readonly string[] | undefined
}

export type LabelSelector = {
  readonly matchLabels?: { readonly [key: string]: string } | undefined
  readonly matchExpressions?: readonly Requirement[] | undefined
}

/** An empty selector matches everything, as in Kubernetes. */
export function matchesLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
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
