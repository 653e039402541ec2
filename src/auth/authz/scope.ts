// Scopes of access keys: whether a scope covers a request, and whether one scope is within another (SPEC §2.8, D25). Pure; the gateway uses it, too.

import type { Scope, ScopeRole, ScopeSecret } from '../../api/caller.ts'
import type { ScopeRoleName } from '../../kinds/scope-validation.ts'
import {
  type Act,
  type Budget,
  contains,
  covers,
  isStream,
  openRuleCoverage,
  type Request,
  ruleMatches,
} from './scope-rules.ts'

/** The entry that covers a request, as text; undefined: none. */
export function allows(scope: Scope | undefined, request: Request): string | undefined {
  if (!restricts(scope)) return 'the key has no scope'
  if (isOwnToken(request)) return 'a token within the scope of its key'
  if (isOpenToAll(request)) return 'allowed to every key'
  return byTarget(scope, request) ?? bySecret(scope, request) ?? byRole(scope, request) ?? byRule(scope, request)
}

const targets = ['projects', 'spaces', 'virtualClusters', 'clusters'] as const

/** Empty lists count as absent. A scope without any field restricts nothing. */
export function restricts(scope: Scope | undefined): scope is Scope {
  if (!scope) return false
  return (
    scope.allowPlatformCli === true ||
    [...targets, 'secrets' as const, 'roles' as const, 'rules' as const].some(field => scope[field]?.length)
  )
}

const isManagement = (group: string) => group === 'management.platform.sh'

/** Creating a direct-cluster token needs no role: its scope is checked against that of the key. */
function isOwnToken({ target, act }: Request): boolean {
  return (
    target === 'Management' &&
    'resource' in act &&
    isManagement(act.group) &&
    act.resource === 'directclusterendpointtokens' &&
    act.verb === 'create' &&
    !act.subresource
  )
}

const selfReviews: ReadonlyMap<string, readonly string[]> = new Map([
  ['authorization.k8s.io', ['selfsubjectaccessreviews', 'selfsubjectrulesreviews']],
  ['authentication.k8s.io', ['selfsubjectreviews']],
])
const discovery = /^\/(apis?(\/.*)?|openapi(\/.*)?|version)?$/

/** Discovery, OpenAPI, the version and reviews about oneself show nothing of others, and every client starts with them (D25). */
function isOpenToAll({ target, act }: Request): boolean {
  if (target !== 'Management') return false
  if ('path' in act) return act.verb === 'get' && discovery.test(act.path)
  return act.verb === 'create' && !act.subresource && selfReviews.get(act.group)?.includes(act.resource) === true
}

function byTarget(scope: Scope, request: Request): string | undefined {
  for (const field of targets)
    for (const [index, entry] of (scope[field] ?? []).entries())
      if (entryCovers(field, entry, request)) return `scope.${field}[${index}]`
  return undefined
}

function bySecret(scope: Scope, { target, act }: Request): string | undefined {
  if (target !== 'Management' || 'path' in act || act.verb !== 'get' || act.subresource || !isManagement(act.group))
    return undefined
  const index = (scope.secrets ?? []).findIndex(one => {
    const { resource, namespace } = placeOf(one)
    return act.resource === resource && act.namespace === namespace && Boolean(one.name) && act.name === one.name
  })
  return index === -1 ? undefined : `scope.secrets[${index}]`
}

/** An entry with both or neither field never matches. */
function placeOf({ namespace = '', project = '' }: ScopeSecret): Partial<{ resource: string; namespace: string }> {
  if (!namespace === !project) return {}
  return project ? { resource: 'projectsecrets', namespace: `p-${project}` } : { resource: 'sharedsecrets', namespace }
}

const isRead = (act: Act): boolean => !isStream(act) && ('path' in act ? act.verb === 'get' : reads.includes(act.verb))

type Entry = {
  readonly project?: string
  readonly readOnly?: boolean
  readonly space?: string
  readonly virtualCluster?: string
  readonly cluster?: string
}

function entryCovers(field: (typeof targets)[number], entry: Entry, request: Request): boolean {
  if (request.target === 'Cluster') return field === 'clusters' && covers(entry.cluster, request.cluster)
  if (field === 'clusters') return false
  const project = projectOf(request)
  if (project === undefined || !covers(entry.project, project)) return false
  if (field === 'projects') return entry.readOnly !== true || isRead(request.act)
  if (request.target === 'ProjectSpace') return field === 'spaces' && covers(entry.space, request.space)
  return (
    request.target === 'ProjectVirtualCluster' &&
    field === 'virtualClusters' &&
    covers(entry.virtualCluster, request.virtualCluster)
  )
}

/** In this API, only the ProjectSecrets of `p-<project>` belong to a project. */
function projectOf(request: Request): string | undefined {
  if (request.target === 'ProjectSpace' || request.target === 'ProjectVirtualCluster') return request.project
  if (request.target !== 'Management' || !('resource' in request.act)) return undefined
  const { group, resource, namespace } = request.act
  return isManagement(group) && resource === 'projectsecrets' && namespace.startsWith('p-') && namespace.length > 2
    ? namespace.slice(2)
    : undefined
}

/**
 * The namespaces of a resource that a scope can cover; undefined: any. Does not evaluate roles and rules: a scope with these can
 * cover anything.
 */
export function namespacesWithin(
  scope: Scope | undefined,
  { group, resource }: { readonly group: string; readonly resource: string },
): readonly string[] | undefined {
  if (!restricts(scope) || rolesOf(scope).length || scope.rules?.length) return undefined
  if (!isManagement(group)) return []
  const single = (scope.secrets ?? []).flatMap(one =>
    placeOf(one).resource === resource ? [placeOf(one).namespace ?? ''] : [],
  )
  if (resource !== 'projectsecrets') return [...new Set(single)]
  const projects = (scope.projects ?? []).flatMap(({ project }) => (project ? [project] : []))
  return projects.includes('*') ? undefined : [...new Set([...projects.map(project => `p-${project}`), ...single])]
}

/**
 * Whether a part of a collection may be covered by something else than roles: roles open no data of objects (D25).
 */
export function coversPart(
  { roles: _, allowPlatformCli: __, ...others }: Scope,
  { namespace, ...kind }: { readonly group: string; readonly resource: string; readonly namespace: string },
): boolean {
  if (!restricts(others)) return false
  const within = namespacesWithin(others, kind)
  return within === undefined || (namespace === '' ? within.length > 0 : within.includes(namespace))
}

const reads = ['get', 'list', 'watch']

/** The kinds whose metadata the command line needs. */
const metadataKinds = new Set(['teams', 'users', 'clusters', 'ownedaccesskeys', 'sharedsecrets', 'projectsecrets'])

/** Whether a scope that does not cover a request would cover it if the response had only metadata. */
export function allowsMetadata(scope: Scope, act: Act): boolean {
  if ('path' in act || act.metadataOnly) return false
  return byRole(scope, { target: 'Management', act: { ...act, metadataOnly: true } }) !== undefined
}

/** The actions that a scope role allows in this API. A stored role that is not among them allows nothing. */
const roles: { readonly [role in ScopeRoleName]: (act: Act) => boolean } = {
  'platform-cli': act =>
    !('path' in act) &&
    act.metadataOnly === true &&
    reads.includes(act.verb) &&
    !act.subresource &&
    isManagement(act.group) &&
    metadataKinds.has(act.resource),
  'metrics-reader': act => 'path' in act && act.verb === 'get' && act.path === '/metrics',
  agent: act => {
    if ('path' in act || act.subresource) return false
    if (act.group === 'authentication.k8s.io') return act.resource === 'tokenreviews' && act.verb === 'create'
    if (!isManagement(act.group)) return false
    if (act.resource === 'accesskeyactivities') return act.verb === 'create'
    return act.resource === 'tokenrevocations' && ['list', 'watch'].includes(act.verb)
  },
}

const isRole = (role: string): role is ScopeRoleName => Object.hasOwn(roles, role)

export const rolesOf = (scope: Scope): readonly ScopeRole[] => [
  ...(scope.roles ?? []),
  ...(scope.allowPlatformCli ? [{ role: 'platform-cli' }] : []),
]

function byRole(scope: Scope, request: Request): string | undefined {
  if (request.target !== 'Management') return undefined
  for (const { role = '', projects, virtualClusters } of rolesOf(scope)) {
    if (!isRole(role) || !roles[role](request.act)) continue
    const confined = Boolean(projects?.length || virtualClusters?.length)
    const project = projectOf(request)
    // This API has no virtual clusters: a role limited to some of them allows nothing here.
    if (!confined || (project !== undefined && projects?.some(one => covers(one, project)))) return `scope role ${role}`
  }
  return undefined
}

function byRule(scope: Scope, request: Request): string | undefined {
  const index = (scope.rules ?? []).findIndex(rule => ruleMatches(rule, request))
  return index === -1 ? undefined : `scope.rules[${index}]`
}

/** Words to look up in one comparison of scopes. That many take a few milliseconds. */
const maxWords = 100_000

/** Whether every entry of `inner` is covered by one entry of `outer`. Doubtful cases count as wider, also a comparison that is too long. */
export function isNoWider(inner: Scope | undefined, outer: Scope | undefined): boolean {
  if (inner === outer || !restricts(outer)) return true
  if (!restricts(inner)) return false
  const budget = { left: maxWords }
  return (
    targets.every(field => isEachIn<Entry>(inner[field], outer[field], entry => isCovered(field, entry, outer))) &&
    isEachIn(inner.secrets, outer.secrets, secret => isSecretCovered(secret, outer)) &&
    isEachIn(rolesOf(inner), rolesOf(outer), openRoleCoverage(rolesOf(outer), budget)) &&
    (!inner.rules?.length || inner.rules.every(openRuleCoverage(outer.rules ?? [], budget)))
  )
}

/** Most entries are in both lists unchanged. A lookup finds them, so that two long lists take linear time. */
function isEachIn<T>(
  inner: readonly T[] | undefined,
  outer: readonly unknown[] | undefined,
  isCovered: (entry: T) => boolean,
): boolean {
  if (!inner?.length) return true
  const known = new Set(outer?.map(one => JSON.stringify(one)))
  return inner.every(one => known.has(JSON.stringify(one)) || isCovered(one))
}

function isCovered(field: (typeof targets)[number], entry: Entry, outer: Scope): boolean {
  if (field === 'clusters') return outer.clusters?.some(one => covers(one.cluster, entry.cluster)) === true
  const byProject =
    outer.projects?.some(
      one => covers(one.project, entry.project) && (one.readOnly !== true || entry.readOnly === true),
    ) === true
  if (field === 'projects' || byProject) return byProject
  if (field === 'spaces')
    return outer.spaces?.some(one => covers(one.project, entry.project) && covers(one.space, entry.space)) === true
  return (
    outer.virtualClusters?.some(
      one => covers(one.project, entry.project) && covers(one.virtualCluster, entry.virtualCluster),
    ) === true
  )
}

/** A project includes its secrets. */
const isSecretCovered = ({ namespace, project, name }: ScopeSecret, outer: Scope): boolean =>
  (!namespace && outer.projects?.some(one => covers(one.project, project)) === true) ||
  outer.secrets?.some(
    one => one.name === name && (one.namespace ?? '') === (namespace ?? '') && (one.project ?? '') === (project ?? ''),
  ) === true

function openRoleCoverage(outer: readonly ScopeRole[], budget: Budget): (inner: ScopeRole) => boolean {
  const isConfined = ({ projects, virtualClusters }: ScopeRole) => Boolean(projects?.length || virtualClusters?.length)
  const named = (list: readonly string[] | undefined) => new Set(list?.filter(name => name !== ''))
  const wide = outer.map(one => ({
    role: one.role,
    isConfined: isConfined(one),
    projects: named(one.projects),
    virtualClusters: named(one.virtualClusters),
  }))
  const within = (names: ReadonlySet<string>, narrow: readonly string[] = []) =>
    names.has('*') || contains(names, narrow, budget)
  return inner =>
    wide.some(
      one =>
        one.role === inner.role &&
        (!one.isConfined ||
          (isConfined(inner) &&
            within(one.projects, inner.projects) &&
            within(one.virtualClusters, inner.virtualClusters))),
    )
}
