// Validates the deprecated rules of a scope (SPEC §2.8.1): contradictions, and parts that can never match.

import type { ScopeRule } from '../api/caller.ts'
import { type FieldError, invalidValue, isEnough, required } from '../api/errors.ts'
import { dnsLabel, isTargetName } from '../api/names.ts'
import { isPathPattern } from './rbac.ts'

export function checkRule(rule: ScopeRule, at: string): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, one] of (rule.resources ?? []).entries())
    if (!isEnough(errors)) errors.push(...checkResources(one, `${at}.resources[${index}]`))
  for (const [index, namespace] of (rule.namespaces ?? []).entries())
    if (namespace !== '' && dnsLabel(namespace).length && !isEnough(errors))
      errors.push(
        invalidValue(
          `${at}.namespaces[${index}]`,
          namespace,
          'must be the name of a namespace, or empty for cluster-scoped resources; there is no wildcard: leave out the list for every namespace',
        ),
      )
  for (const url of rule.nonResourceURLs ?? [])
    if (!(isPathPattern(url) && /^[*/]/.test(url)) && !isEnough(errors))
      errors.push(
        invalidValue(
          `${at}.nonResourceURLs`,
          url,
          'must be a path that starts with /, or *; a wildcard must be the whole last path segment, as in /logs/*',
        ),
      )
  for (const verb of rule.verbs ?? [])
    if (!verbPattern.test(verb) && !isEnough(errors))
      errors.push(invalidValue(`${at}.verbs`, verb, 'must be a verb such as get or deletecollection, or * for all'))
  const { cluster = '', requestTargets = [] } = rule
  if (cluster && cluster !== '*' && !isTargetName(cluster))
    errors.push(invalidValue(`${at}.cluster`, cluster, rightName))
  if (cluster && requestTargets.length && !requestTargets.includes('Cluster'))
    errors.push(
      invalidValue(`${at}.requestTargets`, requestTargets, 'must contain Cluster, because the rule has a cluster'),
    )
  for (const [index, one] of (rule.virtualClusters ?? []).entries())
    if (!isEnough(errors)) errors.push(...checkVirtualCluster(one, `${at}.virtualClusters[${index}]`))
  return errors
}

/** Verbs of requests are lower-case words; custom verbs may have digits. */
const verbPattern = /^(?:\*|[a-z][a-z0-9-]*)$/
const emptyName = 'an empty text matches nothing'
export const rightName = 'must be a name of lower-case letters, digits, - and ., such as prod, or * for all'

type VirtualCluster = NonNullable<ScopeRule['virtualClusters']>[number]

const isProjectNamespace = (namespace: string) =>
  namespace === '*' || (namespace.startsWith('p-') && isTargetName(namespace.slice(2)))

function checkVirtualCluster({ name = '', namespace = '' }: VirtualCluster, at: string): FieldError[] {
  const errors: FieldError[] = []
  if (!name) errors.push(required(`${at}.name`, 'the name of the virtual cluster, or * for all'))
  else if (name !== '*' && !isTargetName(name)) errors.push(invalidValue(`${at}.name`, name, rightName))
  if (!namespace) errors.push(required(`${at}.namespace`, 'p-<project>, or * for all'))
  else if (!isProjectNamespace(namespace))
    errors.push(
      invalidValue(`${at}.namespace`, namespace, 'must be p-<project>, the namespace of a project, or * for all'),
    )
  return errors
}

type Resources = NonNullable<ScopeRule['resources']>[number]

function checkResources({ group = '', resources = [], resourceNames = [] }: Resources, at: string): FieldError[] {
  const errors: FieldError[] = []
  if (group.includes('*'))
    errors.push(
      invalidValue(`${at}.group`, group, 'there is no wildcard for groups: leave out resources for all groups'),
    )
  if (resourceNames.length && resources.length === 0)
    errors.push(required(`${at}.resources`, 'required with resourceNames'))
  if (resourceNames.includes('')) errors.push(invalidValue(`${at}.resourceNames`, '', emptyName))
  const field = `${at}.resources`
  for (const one of resources)
    if (!resourcePattern.test(one) && !isEnough(errors))
      errors.push(
        invalidValue(
          field,
          one,
          'must be a resource or resource/subresource, with at most one slash; a wildcard replaces a whole name',
        ),
      )
  for (const one of overlaps(resources)) {
    if (isEnough(errors)) break
    errors.push(invalidValue(field, one, 'is covered by another entry; entries with wildcards must not overlap'))
  }
  return errors
}

/** A word or `*`, and after at most one slash another one. */
const resourcePattern = /^(?:\*|[^*/]+)(?:\/(?:\*|[^*/]+))?$/

const hasTwoSlashes = (one: string) => {
  const slash = one.indexOf('/')
  return slash !== -1 && one.includes('/', slash + 1)
}

/** The entries that match something which another entry with a wildcard also matches. Takes linear time. */
function* overlaps(resources: readonly string[]): Generator<string> {
  // A scope can have tens of thousands of entries, and most lists have no wildcard.
  if (!resources.some(one => one.includes('*'))) return
  const wildcards = countWildcards(resources)
  for (const one of resources) if (isOverlapping(one, wildcards)) yield one
}

/** How often each wildcard occurs: `*`, and by their other part `*` with a subresource and a kind with `/*`. */
type Wildcards = {
  readonly all: number
  readonly bySub: ReadonlyMap<string, number>
  readonly byKind: ReadonlyMap<string, number>
  readonly hasAllOfKind: boolean
}

function countWildcards(resources: readonly string[]): Wildcards {
  const bySub = new Map<string, number>()
  const byKind = new Map<string, number>()
  let all = 0
  for (const one of resources) {
    if (one === '*') all++
    else if (!one.includes('*') || hasTwoSlashes(one)) continue
    const [kind, sub] = partsOf(one)
    if (kind === '*' && sub !== undefined) bySub.set(sub, (bySub.get(sub) ?? 0) + 1)
    if (sub === '*') byKind.set(kind, (byKind.get(kind) ?? 0) + 1)
  }
  const hasAllOfKind = [...byKind.keys()].some(kind => kind !== '' && !kind.includes('*'))
  return { all, bySub, byKind, hasAllOfKind }
}

/** Not split, which would cost more than the rest. */
function partsOf(one: string): [kind: string, sub: string | undefined] {
  const slash = one.indexOf('/')
  if (slash === -1) return [one, undefined]
  const end = one.indexOf('/', slash + 1)
  return [one.slice(0, slash), one.slice(slash + 1, end === -1 ? undefined : end)]
}

function isOverlapping(one: string, { all, bySub, byKind, hasAllOfKind }: Wildcards): boolean {
  const [kind, sub] = partsOf(one)
  if (sub === undefined) return all > (one === '*' ? 1 : 0)
  // An entry does not overlap with itself.
  const own = hasTwoSlashes(one) ? 0 : 1
  const isAnyKind = kind === '*'
  const isAnySub = sub === '*'
  return (
    all > 0 ||
    (bySub.get(sub) ?? 0) > (isAnyKind ? own : 0) ||
    (byKind.get(kind) ?? 0) > (isAnySub ? own : 0) ||
    (bySub.get('*') ?? 0) > (isAnyKind && isAnySub ? own : 0) ||
    // `teams/*` and `*/status` both match teams/status.
    (hasAllOfKind && isAnyKind && sub !== '' && !sub.startsWith('*'))
  )
}

/** Whether a stored rule is free of what `checkRule` rejects although it would match something. Such a rule grants nothing (D25). */
export function hasNoContradiction({ resources = [], virtualClusters = [] }: ScopeRule): boolean {
  if (resources.some(one => one.resources?.length && !overlaps(one.resources).next().done)) return false
  return (
    virtualClusters.length === 0 ||
    virtualClusters.some(({ name, namespace }) => Boolean(name) && isProjectNamespace(namespace ?? ''))
  )
}
