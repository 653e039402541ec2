// The deprecated rules of a scope (SPEC §2.8.1): which requests a rule matches, and whether one rule covers another.

import type { ScopeRule } from '../../api/caller.ts'
import { hasNoContradiction } from '../../kinds/scope-rule-validation.ts'

/** The target of a request: this API, or through the gateway a cluster, a space or a virtual cluster of a project. */
export type Target =
  | { readonly target: 'Management' }
  | { readonly target: 'Cluster'; readonly cluster: string }
  | { readonly target: 'ProjectSpace'; readonly project: string; readonly space: string }
  | { readonly target: 'ProjectVirtualCluster'; readonly project: string; readonly virtualCluster: string }

/** The action: on a resource, or on a path. */
export type Act =
  | { readonly verb: string; readonly path: string; readonly upgrades?: boolean }
  | {
      readonly verb: string
      /** The connection becomes a stream in both directions. */
      readonly upgrades?: boolean
      readonly group: string
      readonly resource: string
      readonly subresource?: string
      readonly namespace: string
      readonly name?: string
      /** The response shows only metadata of the objects. */
      readonly metadataOnly?: boolean
    }

export type Request = Target & { readonly act: Act }

/** Subresources that reach a program in the cluster. */
export const streams: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward', 'proxy'])
const readVerbs = new Set(['get', 'list', 'watch', 'head', 'options'])

/** Whether a request can change something, whatever its HTTP method (D25). */
export const isStream = (act: Act): boolean =>
  act.upgrades === true || ('resource' in act && streams.has(act.subresource ?? ''))

/** The verbs that a rule must have. */
export const verbsOf = (act: Act): readonly string[] =>
  isStream(act) && readVerbs.has(act.verb) ? [act.verb, 'create'] : [act.verb]

/** Matches a name against a pattern: `*` matches every name, and an unset pattern none. */
export const covers = (pattern: string | undefined, name: string | undefined): boolean =>
  pattern !== undefined && pattern !== '' && (pattern === '*' || pattern === name)

const anyOr = <T>(list: readonly T[] | undefined, test: (one: T) => boolean): boolean =>
  !list?.length || list.some(test)

const matchable = new WeakMap<ScopeRule, boolean>()

/** A stored rule that is no longer valid grants nothing (D25). Scopes are never changed in place. */
export function isMatchable(rule: ScopeRule): boolean {
  const known = matchable.get(rule)
  if (known !== undefined) return known
  const made = hasNoContradiction(rule)
  matchable.set(rule, made)
  return made
}

export function ruleMatches(rule: ScopeRule, request: Request): boolean {
  if (!isMatchable(rule)) return false
  if (rule.cluster && !(request.target === 'Cluster' && covers(rule.cluster, request.cluster))) return false
  if (!anyOr(rule.requestTargets, target => target === request.target)) return false
  if (!verbsOf(request.act).every(wanted => anyOr(rule.verbs, verb => verb === '*' || verb === wanted))) return false
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

/** A rule with resources or namespaces applies to resources, a rule with paths to paths, and a rule with neither to everything. */
function matchesAct(rule: ScopeRule, act: Act): boolean {
  const about = aboutOf(rule)
  if ('path' in act)
    return about.paths ? rule.nonResourceURLs?.some(url => pathMatches(url, act.path)) === true : !about.resources
  if (!about.resources) return !about.paths
  return (
    anyOr(rule.namespaces, namespace => namespace === act.namespace) &&
    anyOr(rule.resources, one => resourceMatches(one, act))
  )
}

/** Neither: about everything. */
export const aboutOf = ({ resources, namespaces, nonResourceURLs }: ScopeRule) => ({
  resources: Boolean(resources?.length || namespaces?.length),
  paths: Boolean(nonResourceURLs?.length),
})

/** A wildcard is allowed only as the whole last segment. */
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
  // Names apply only together with resources. A request without a name is about all objects.
  return (
    isNamed &&
    (!rule.resourceNames?.length ||
      (Boolean(rule.resources?.length) && act.name !== undefined && rule.resourceNames.includes(act.name)))
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

/** Words that one comparison of scopes may still look up. */
export type Budget = { left: number }

/** A list of the outer scope, as a set because many lists of the inner scope are compared with it. */
export function contains(wide: ReadonlySet<string>, narrow: readonly string[], budget: Budget): boolean {
  budget.left -= narrow.length
  return budget.left >= 0 && narrow.every(one => wide.has(one))
}

/** A rule of the outer scope. */
type OuterRule = {
  readonly rule: ScopeRule
  readonly verbs: ReadonlySet<string>
  readonly requestTargets: ReadonlySet<string>
  readonly namespaces: ReadonlySet<string>
  /** The virtual clusters as text. */
  readonly virtualClusters: string
}

const textOf = (list: unknown) => JSON.stringify(list ?? [])
/** Resources and paths, the long part of a rule, and the other fields. */
const actsOf = ({ resources, nonResourceURLs }: ScopeRule) => textOf([resources ?? [], nonResourceURLs ?? []])
const othersOf = ({ resources: _, nonResourceURLs: __, ...others }: ScopeRule) => textOf(others)

/**
 * Whether one of the outer rules surely matches every request that a rule matches. Compares field by field, and says no in doubtful
 * cases with wildcards, or when the budget is spent.
 */
export function openRuleCoverage(outer: readonly ScopeRule[], budget: Budget): (inner: ScopeRule) => boolean {
  // Resources and paths must be the same in both rules, unless the outer rule has neither. A lookup finds these few.
  const byActs = new Map<string, { readonly known: Set<string>; readonly rules: OuterRule[] }>()
  const forAll: OuterRule[] = []
  for (const rule of outer) {
    const acts = actsOf(rule)
    const same = byActs.get(acts) ?? { known: new Set(), rules: [] }
    byActs.set(acts, same)
    same.known.add(othersOf(rule))
    const about = aboutOf(rule)
    const rules = about.resources || about.paths ? same.rules : forAll
    rules.push({
      rule,
      verbs: new Set(rule.verbs),
      requestTargets: new Set(rule.requestTargets),
      namespaces: new Set(rule.namespaces),
      virtualClusters: textOf(rule.virtualClusters),
    })
  }
  return inner => {
    const same = byActs.get(actsOf(inner))
    // Most rules are in both scopes unchanged.
    if (same?.known.has(othersOf(inner))) return true
    const virtualClusters = textOf(inner.virtualClusters)
    const isCovered = (one: OuterRule) => {
      budget.left--
      return budget.left >= 0 && coversFields(one, inner, virtualClusters, budget)
    }
    return forAll.some(isCovered) || same?.rules.some(one => isCovered(one) && coversAbout(one, inner, budget)) === true
  }
}

/** Without resources and paths. */
function coversFields(
  { rule, verbs, requestTargets, virtualClusters }: OuterRule,
  inner: ScopeRule,
  innerClusters: string,
  budget: Budget,
): boolean {
  return (
    (!rule.cluster || (rule.cluster === '*' ? Boolean(inner.cluster) : rule.cluster === inner.cluster)) &&
    (!rule.virtualClusters?.length || virtualClusters === innerClusters) &&
    isWithin(requestTargets, inner.requestTargets, budget) &&
    // Of the lists, only verbs have a wildcard.
    (verbs.has('*') || isWithin(verbs, inner.verbs, budget))
  )
}

/** For rules with the same resources and paths. */
function coversAbout({ rule, namespaces }: OuterRule, inner: ScopeRule, budget: Budget): boolean {
  const [wide, narrow] = [aboutOf(rule), aboutOf(inner)]
  // A rule with fewer fields applies to more. Adding a namespace to a rule for paths widens it.
  if ((narrow.resources && !wide.resources) || (narrow.paths && !wide.paths)) return false
  return (narrow.resources || narrow.paths) && isWithin(namespaces, inner.namespaces, budget)
}

/** An empty list is every word. */
const isWithin = (wide: ReadonlySet<string>, narrow: readonly string[] | undefined, budget: Budget): boolean =>
  wide.size === 0 || (narrow?.length ? contains(wide, narrow, budget) : false)
