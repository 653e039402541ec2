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
    if (!isPathPattern(url) && !isEnough(errors))
      errors.push(
        invalidValue(`${at}.nonResourceURLs`, url, 'a wildcard must be the whole last path segment, as in /logs/*'),
      )
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
  const field = `${at}.resources`
  for (const one of resources)
    if (one.split('/', 3).length > 2 && !isEnough(errors))
      errors.push(invalidValue(field, one, 'must be a resource or resource/subresource, with at most one slash'))
  for (const one of overlaps(resources)) {
    if (isEnough(errors)) break
    errors.push(invalidValue(field, one, 'is covered by another entry; entries with wildcards must not overlap'))
  }
  return errors
}

/** The entries that match something which another entry with a wildcard also matches. Takes linear time. */
function* overlaps(resources: readonly string[]): Generator<string> {
  const times = new Map<string, number>()
  for (const one of resources) times.set(one, (times.get(one) ?? 0) + 1)
  const hasAllOfKind = resources.some(one => /^[^*/]+\/\*$/.test(one))
  for (const one of resources) {
    const isCovered = wildcardsOver(one).some(pattern => (times.get(pattern) ?? 0) > (pattern === one ? 1 : 0))
    // `teams/*` and `*/status` both match teams/status.
    if (isCovered || (hasAllOfKind && /^\*\/[^*]/.test(one))) yield one
  }
}

function wildcardsOver(one: string): string[] {
  const [kind, sub] = one.split('/')
  return sub === undefined ? ['*'] : ['*', `*/${sub}`, `${kind}/*`, '*/*']
}

/** Whether a stored rule is free of what `checkRule` rejects although it would match something. Such a rule grants nothing (D25). */
export function hasNoContradiction({ resources = [], virtualClusters = [] }: ScopeRule): boolean {
  if (resources.some(one => one.resources?.length && !overlaps(one.resources).next().done)) return false
  return (
    virtualClusters.length === 0 ||
    virtualClusters.some(({ name, namespace }) => Boolean(name) && isProjectNamespace(namespace ?? ''))
  )
}
