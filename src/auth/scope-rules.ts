// The deprecated rules of a scope (SPEC §2.8.1): which requests one matches, and when one is no wider than another.

import type { ScopeRule } from '../api/caller.ts'
import type { Act, Request } from './scope.ts'

/** A name in an entry against a name: `*` is every one, nothing set is none. */
export const covers = (pattern: string | undefined, name: string | undefined): boolean =>
  pattern !== undefined && pattern !== '' && (pattern === '*' || pattern === name)

const anyOr = <T>(list: readonly T[] | undefined, test: (one: T) => boolean): boolean =>
  !list?.length || list.some(test)

export function ruleMatches(rule: ScopeRule, request: Request): boolean {
  if (rule.cluster && !(request.target === 'Cluster' && covers(rule.cluster, request.cluster))) return false
  if (!anyOr(rule.requestTargets, target => target === request.target)) return false
  if (!anyOr(rule.verbs, verb => verb === '*' || verb === request.act.verb)) return false
  if (request.target === 'ProjectVirtualCluster') {
    const { virtualCluster, project } = request
    const isNamed = anyOr(
      rule.virtualClusters,
      one => covers(one.name, virtualCluster) && covers(one.namespace, `p-${project}`),
    )
    if (!isNamed) return false
  }
  return matchesAct(rule, request.act)
}

/** A rule that names resources or namespaces is about resources, one that names paths about paths, one that names neither about all. */
function matchesAct(rule: ScopeRule, act: Act): boolean {
  const aboutResources = Boolean(rule.resources?.length || rule.namespaces?.length)
  const aboutPaths = Boolean(rule.nonResourceURLs?.length)
  if ('path' in act)
    return aboutPaths ? rule.nonResourceURLs?.some(url => pathMatches(url, act.path)) === true : !aboutResources
  if (!aboutResources) return !aboutPaths
  return (
    anyOr(rule.namespaces, namespace => namespace === act.namespace) &&
    anyOr(rule.resources, one => resourceMatches(one, act))
  )
}

/** A wildcard only as the whole last step. */
function pathMatches(pattern: string, path: string): boolean {
  if (pattern === '*' || pattern === path) return true
  return pattern.endsWith('/*') && path.startsWith(pattern.slice(0, -1))
}

function resourceMatches(
  rule: NonNullable<ScopeRule['resources']>[number],
  act: Extract<Act, { resource: string }>,
): boolean {
  if ((rule.group ?? '') !== act.group) return false
  const isNamed = anyOr(rule.resources, pattern => wordMatches(pattern, act.resource, act.subresource))
  // Names bind only where resources are named too; a request without a name is about every instance.
  return (
    isNamed &&
    (!rule.resourceNames?.length ||
      (rule.resources?.length !== 0 && act.name !== undefined && rule.resourceNames.includes(act.name)))
  )
}

/** `<kind>`, `<kind>/<sub>`, `*`, `<kind>/*`, `* /<sub>` (without the blank). */
function wordMatches(pattern: string, resource: string, subresource: string | undefined): boolean {
  if (pattern === '*') return true
  const [kind, sub, ...rest] = pattern.split('/')
  if (rest.length || (kind !== '*' && kind !== resource)) return false
  if (sub === undefined) return subresource === undefined
  return subresource !== undefined && (sub === '*' || sub === subresource)
}

/** Whether every request `inner` matches is surely matched by `outer`. Field by field, and strict where wildcards would need thought. */
export function ruleCovers(outer: ScopeRule, inner: ScopeRule): boolean {
  const within = (wide: readonly string[] | undefined, narrow: readonly string[] | undefined) =>
    !wide?.length ||
    wide.includes('*') ||
    (Boolean(narrow?.length) && narrow?.every(one => wide.includes(one)) === true)
  const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)
  const openKinds = !outer.resources?.length && !outer.namespaces?.length && !outer.nonResourceURLs?.length
  return (
    within(outer.verbs, inner.verbs) &&
    within(outer.requestTargets, inner.requestTargets) &&
    (!outer.cluster || outer.cluster === '*'
      ? !outer.cluster || Boolean(inner.cluster)
      : outer.cluster === inner.cluster) &&
    (!outer.virtualClusters?.length || same(outer.virtualClusters, inner.virtualClusters)) &&
    (openKinds ||
      (same(outer.resources ?? [], inner.resources ?? []) &&
        within(outer.namespaces, inner.namespaces) &&
        same(outer.nonResourceURLs ?? [], inner.nonResourceURLs ?? [])))
  )
}
