// A second evaluator for comparison, written from the specification alone (SPEC §2.7, §2.8; D15, D23, D25–D27), slow and simple. The escalation prover builds
// its model on its evaluation of rules and scopes.

export type World = {
  teams: { name: string; users: string[]; groups: string[]; owner: string; access: Access[] }[]
  secrets: {
    kind: 'sharedsecrets' | 'projectsecrets'
    namespace: string
    name: string
    owner: string
    access: Access[]
  }[]
  keys: Key[]
  roles: { namespace: string; name: string; rules: Rule[] }[]
  bindings: { namespace: string; role: string; ofNamespace: boolean; users: string[]; groups: string[] }[]
}
export type Access = { verbs: string[]; subresources: string[]; users: string[]; teams: string[] }
export type Rule = { verbs: string[]; apiGroups: string[]; resources: string[]; resourceNames: string[] }
export type Key = { name: string; user: string; team: string; groups: string[]; scope?: Scope }
export type Scope = {
  projects?: string[]
  /** Only get, list and watch. */
  readOnlyProjects?: string[]
  /** Only get of the secret itself. */
  secrets?: { resource: string; namespace: string; name: string }[]
  clusters?: string[]
  roles?: { role: string; projects: string[] }[]
  rules?: {
    verbs: string[]
    resources: { group: string; resources: string[]; resourceNames: string[] }[]
    namespaces: string[]
    requestTargets: string[]
  }[]
  allowPlatformCli?: boolean
}
export type Ask = {
  verb: string
  group: string
  resource: string
  sub: string
  namespace: string
  name: string
  /** The response has only metadata of the objects. */
  metadata?: boolean
}

const ours = 'management.platform.sh'
const any = (list: string[], word: string) => list.indexOf('*') >= 0 || list.indexOf(word) >= 0
const emptyOr = (list: string[], word: string) => list.length === 0 || any(list, word)

export function mayDo(world: World, key: Key, ask: Ask): boolean {
  if (key.team && !world.teams.some(team => team.name === key.team)) return false
  return inScope(key.scope, ask) && hasRight(world, key, ask)
}

/** Whether a scope covers a request on a resource of this API. */
export function inScope(scope: Scope | undefined, ask: Ask): boolean {
  const given = scope ?? {}
  const lists = [given.projects, given.readOnlyProjects, given.secrets, given.clusters, given.roles, given.rules]
  const sizes = lists.map(list => list?.length ?? 0)
  if (sizes.every(size => size === 0) && !given.allowPlatformCli) return true
  if (ask.resource === 'directclusterendpointtokens' && ask.verb === 'create' && ask.sub === '') return true
  if (ask.verb === 'create' && ask.sub === '' && selfReviews.indexOf(`${ask.resource}.${ask.group}`) >= 0) return true
  const project =
    ask.resource === 'projectsecrets' && ask.group === ours && ask.namespace.startsWith('p-')
      ? ask.namespace.slice(2)
      : undefined
  if (project !== undefined && any(given.projects ?? [], project)) return true
  const isRead = ['get', 'list', 'watch'].indexOf(ask.verb) >= 0
  if (project !== undefined && isRead && any(given.readOnlyProjects ?? [], project)) return true
  if (ask.verb === 'get' && ask.sub === '' && ask.group === ours && ask.name !== '')
    for (const { resource, namespace, name } of given.secrets ?? [])
      if (resource === ask.resource && namespace === ask.namespace && name === ask.name) return true
  const roles = [
    ...(given.roles ?? []),
    ...(given.allowPlatformCli ? [{ role: 'platform-cli', projects: [] as string[] }] : []),
  ]
  for (const { role, projects } of roles) {
    if (!roleOpens(role, ask)) continue
    if (projects.length === 0 || (project !== undefined && any(projects, project))) return true
  }
  for (const rule of given.rules ?? []) {
    if (!emptyOr(rule.requestTargets, 'Management') || !emptyOr(rule.verbs, ask.verb)) continue
    if (rule.namespaces.length && rule.namespaces.indexOf(ask.namespace) < 0) continue
    if (rule.resources.length === 0 || rule.resources.some(one => namesIt(one, ask))) return true
  }
  return false
}

const selfReviews = [
  'selfsubjectreviews.authentication.k8s.io',
  'selfsubjectaccessreviews.authorization.k8s.io',
  'selfsubjectrulesreviews.authorization.k8s.io',
]

const withMetadata = ['teams', 'users', 'clusters', 'ownedaccesskeys', 'sharedsecrets', 'projectsecrets']

function roleOpens(role: string, ask: Ask): boolean {
  if (role === 'platform-cli')
    return (
      ask.metadata === true &&
      ['get', 'list', 'watch'].indexOf(ask.verb) >= 0 &&
      ask.group === ours &&
      ask.sub === '' &&
      withMetadata.indexOf(ask.resource) >= 0
    )
  if (role !== 'agent' || ask.group !== ours || ask.sub !== '') return false
  if (ask.resource === 'tokenrevocations') return ask.verb === 'list' || ask.verb === 'watch'
  return ask.resource === 'accesskeyactivities' && ask.verb === 'create'
}

function namesIt(one: { group: string; resources: string[]; resourceNames: string[] }, ask: Ask): boolean {
  if (one.group !== ask.group) return false
  const words = ask.sub ? ['*', `${ask.resource}/${ask.sub}`, `${ask.resource}/*`, `*/${ask.sub}`] : ['*', ask.resource]
  if (one.resources.length && !words.some(word => one.resources.indexOf(word) >= 0)) return false
  if (one.resourceNames.length === 0) return true
  return one.resources.length > 0 && ask.name !== '' && one.resourceNames.indexOf(ask.name) >= 0
}

function hasRight(world: World, key: Key, ask: Ask): boolean {
  const username = key.team ? `platform:team:${key.team}` : key.user
  const groups = ['system:authenticated', ...key.groups]
  const teams = key.team
    ? [key.team]
    : world.teams
        .filter(team => team.users.indexOf(key.user) >= 0 || team.groups.some(group => groups.indexOf(group) >= 0))
        .map(team => team.name)
  if (!key.team) groups.push(`platform:user:${key.user}`)
  for (const team of teams) groups.push(`platform:team:${team}`)
  const personal = ask.group === ours && ask.resource === 'ownedaccesskeys' && (ask.verb !== 'create' || ask.sub !== '')
  if (holds(world, username, groups, personal ? { ...ask, verb: '*' } : ask)) return true
  if (ask.group !== ours) return false
  if (ask.resource === 'ownedaccesskeys' && ask.verb === 'create' && ask.sub === '') return true // platform-user
  if (ask.name === '' || (ask.verb === 'create' && ask.sub === '')) return false // it names no object
  if (ask.resource === 'ownedaccesskeys') {
    const target = world.keys.find(one => one.name === ask.name)
    if (!target) return false
    if (target.user !== '') return target.user === username
    return mayDo(world, key, {
      verb: 'update',
      group: ours,
      resource: 'teams',
      sub: '',
      namespace: '',
      name: target.team,
    })
  }
  if (
    ask.resource === 'teams' &&
    ask.verb === 'get' &&
    (ask.sub === '' || ask.sub === 'permissions') &&
    teams.indexOf(ask.name) >= 0
  )
    return world.teams.some(team => team.name === ask.name)
  const object =
    ask.resource === 'teams'
      ? world.teams.find(team => team.name === ask.name)
      : world.secrets.find(one => one.kind === ask.resource && one.namespace === ask.namespace && one.name === ask.name)
  if (!object) return false
  if (object.owner === username || (object.owner.startsWith('team ') && teams.indexOf(object.owner.slice(5)) >= 0))
    return true
  return object.access.some(entry => {
    const named =
      entry.users.indexOf('*') >= 0 ||
      entry.users.indexOf(username) >= 0 ||
      entry.teams.some(team => teams.indexOf(team) >= 0)
    return named && any(entry.verbs, ask.verb) && (ask.sub === '' || any(entry.subresources, ask.sub))
  })
}

function holds(world: World, username: string, groups: string[], ask: Ask): boolean {
  for (const binding of world.bindings) {
    if (binding.namespace !== '' && binding.namespace !== ask.namespace) continue
    if (binding.users.indexOf(username) < 0 && !binding.groups.some(group => groups.indexOf(group) >= 0)) continue
    const role = world.roles.find(
      one => one.name === binding.role && one.namespace === (binding.ofNamespace ? binding.namespace : ''),
    )
    for (const rule of role?.rules ?? []) if (ruleCovers(rule, ask)) return true
  }
  return false
}

/** Whether a role's rule covers a request on a resource. */
export function ruleCovers(rule: Rule, ask: Ask): boolean {
  const words = ask.sub ? [`${ask.resource}/${ask.sub}`, `${ask.resource}/*`, `*/${ask.sub}`, '*'] : [ask.resource, '*']
  if (!any(rule.verbs, ask.verb) || !any(rule.apiGroups, ask.group)) return false
  if (!words.some(word => rule.resources.indexOf(word) >= 0)) return false
  return rule.resourceNames.length === 0 || (ask.name !== '' && rule.resourceNames.indexOf(ask.name) >= 0)
}
