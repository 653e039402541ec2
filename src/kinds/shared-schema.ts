// Shapes that several kinds share: owner, access entries, scope, conditions (SPEC §2.7, §2.8; D23).

import type { Caller } from '../api/caller.ts'
import { memberTerm, userTerm } from '../api/candidates.ts'
import { type FieldError, fieldForbidden, invalidValue, isEnough } from '../api/errors.ts'
import type { Grant, Recipient } from '../api/grant.ts'
import type { Right, Who } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { closed, flag, list, mapList, oneOf, type Static, struct, text, time } from '../api/schema.ts'
import { meansTeam, teamOfGroup } from './team-uids.ts'

export const owner = struct('Who owns the object: a user or a team. Defaults to its creator.', {
  user: text('The user who owns it.'),
  team: text('The team that owns it.'),
})

const accessEntry = struct(
  'Access rights for users and teams.',
  {
    name: text('Optional name of the rule.'),
    verbs: list(text(''), 'Verbs granted on the object; * is every verb.'),
    subresources: list(text(''), 'Sub-resources the verbs extend to.'),
    users: list(text(''), 'Users who get these verbs; * is everyone signed in.'),
    teams: list(text(''), 'Teams who get these verbs.'),
  },
  ['verbs'],
)

export const access = list(accessEntry, 'Access rights for users and teams on this object.')

const target = (description: string, fields: readonly string[]) =>
  struct(
    description,
    Object.fromEntries(fields.map(field => [field, text(`Name of the ${field}; * selects all.`)])),
    [],
    closed,
  )

const role = struct(
  'A managed permission, optionally confined.',
  {
    role: oneOf(
      ['agent', 'vcluster', 'network-peer', 'platform-cli', 'workspace', 'metrics-writer', 'metrics-reader'],
      'Name of the role.',
    ),
    projects: list(text(''), 'Projects the role is confined to.'),
    virtualClusters: list(text(''), 'Virtual clusters the role is confined to.'),
  },
  [],
  closed,
)

const resourceRule = struct(
  'Resources matched.',
  {
    group: text('API group; empty is the core group.'),
    resources: list(text(''), 'Names such as <kind>, <kind>/<sub>, *, <kind>/*, */<sub>. Empty: all of the group.'),
    resourceNames: list(text(''), 'Instance names; needs resources. Empty: every instance.'),
  },
  [],
  closed,
)

const rule = struct(
  'A rule; deprecated in favour of projects, spaces and virtualClusters.',
  {
    verbs: list(text(''), 'Verbs matched. Empty: every verb.'),
    resources: list(resourceRule, 'Resources matched. Empty: all.'),
    namespaces: list(text(''), 'Namespaces matched; the empty string matches what has none. Empty: every namespace.'),
    nonResourceURLs: list(text(''), 'URL paths; a trailing * only as the whole last step.'),
    requestTargets: list(
      oneOf(['Management', 'Cluster', 'ProjectSpace', 'ProjectVirtualCluster'], ''),
      'Allowed request targets. Empty: every request.',
    ),
    cluster: text('Cluster that the rule matches; when set, other requests are not allowed.'),
    virtualClusters: list(
      struct('A virtual cluster.', { name: text('Name of it.'), namespace: text('Namespace of it.') }, [], closed),
      'Virtual clusters that the rule matches. Empty: no restriction.',
    ),
  },
  [],
  closed,
)

export const scope = struct(
  'What the key or token may reach; nothing set restricts nothing.',
  {
    roles: list(role, 'Managed permissions to apply.'),
    projects: list(target('A project.', ['project']), 'Projects that may be accessed.'),
    spaces: list(target('A space of a project.', ['project', 'space']), 'Spaces that may be accessed.'),
    virtualClusters: list(
      target('A virtual cluster of a project.', ['project', 'virtualCluster']),
      'Virtual clusters that may be accessed.',
    ),
    clusters: list(target('A cluster.', ['cluster']), 'Clusters that may be accessed.'),
    rules: list(rule, 'Deprecated: use projects, spaces and virtualClusters.', { deprecated: true }),
    allowPlatformCli: flag(
      'Deprecated: use the role platform-cli. Allows the read-only requests the command line needs.',
      {
        deprecated: true,
      },
    ),
  },
  [],
  closed,
)

export const conditions = mapList(
  struct(
    'A condition the object is in.',
    {
      type: text('What the condition is about.'),
      status: text('True, False or Unknown.'),
      severity: text('How grave it is when not True.'),
      lastTransitionTime: time('When the status last changed.'),
      reason: text('One word for why.'),
      message: text('A sentence for a person.'),
    },
    ['type', 'status'],
  ),
  ['type'],
  'Conditions the object is in.',
)

type Owner = { readonly user?: string | undefined; readonly team?: string | undefined }
type Owned = { owner?: Static<typeof owner> | undefined }

/** Whom an object belongs to by default: the user or the team that creates it. */
export function callerAsOwner({ identity, username }: Caller): Owner {
  if (identity === 'User') return { user: username }
  const team = identity === 'Team' ? teamOfGroup(username) : undefined
  return team === undefined ? {} : { team }
}

/** Absent on create: the creator, or a team key's team. Absent later: the stored one stays (D23). */
export function keepOwner<S extends Owned, T>(
  next: Resource<S, T>,
  old: Resource<S, T> | undefined,
  caller: Caller,
): Resource<S, T> {
  if (next.spec?.owner?.user || next.spec?.owner?.team) return next
  const kept = old ? old.spec?.owner : callerAsOwner(caller)
  return kept?.user || kept?.team ? { ...next, spec: { ...(next.spec as S), owner: kept } } : next
}

type Shared = Owned & { access?: Static<typeof access> | undefined }

/** The owner has every verb; access entries give theirs (D26). */
export function sharedRights(object: Resource<Shared, unknown>, { username, teams }: Who): Right[] {
  const { owner: whose, access: entries = [] } = object.spec ?? {}
  const isIn = (team: string) => teams.has(team) && meansTeam(object, team, teams.get(team))
  const is = (user: string) => {
    const team = user === username ? teamOfGroup(user) : undefined
    return team === undefined ? user === username : isIn(team)
  }
  const owns = whose?.user ? is(whose.user) : whose?.team !== undefined && isIn(whose.team)
  const rights: Right[] = owns ? [{ verbs: ['*'], subresources: ['*'], because: 'the caller owns the object' }] : []
  for (const [index, entry] of entries.entries()) {
    const byUser = entry.users?.includes('*') || entry.users?.some(is)
    if (!byUser && !entry.teams?.some(isIn)) continue
    const because = `spec.access[${index}] of the object`
    rights.push({ verbs: entry.verbs ?? [], subresources: entry.subresources ?? [], because })
  }
  return rights
}

/** Everybody whom `sharedRights` can give a right. */
export function sharedReaders({ spec }: Resource<Shared, unknown>): string[] {
  const { owner: whose, access: entries } = spec ?? {}
  const terms: string[] = []
  if (whose?.user) terms.push(userTerm(whose.user))
  if (whose?.team) terms.push(memberTerm(whose.team))
  for (const { users, teams } of entries ?? []) {
    for (const user of users ?? []) terms.push(userTerm(user))
    for (const team of teams ?? []) terms.push(memberTerm(team))
  }
  return terms
}

/** The username of a team's keys means that team (D16). */
export function userNamed(name: string): Recipient {
  const team = teamOfGroup(name)
  return team === undefined ? { kind: 'user', name } : { kind: 'team', name: team }
}

/** What owner and access entries give (D60). */
export function sharedGrants({ spec }: Resource<Shared, unknown>): Grant[] {
  const { owner: whose, access: entries = [] } = spec ?? {}
  const grants: Grant[] = []
  const name = whose?.user || whose?.team
  if (name)
    grants.push({ type: 'owner', field: 'spec.owner', to: whose?.user ? userNamed(name) : { kind: 'team', name } })
  for (const [index, { verbs = [], subresources = [], users = [], teams = [] }] of entries.entries()) {
    const give = (to: Recipient) =>
      grants.push({ type: 'object', field: `spec.access[${index}]`, to, verbs, subresources })
    for (const user of users) give(userNamed(user))
    for (const team of teams) give({ kind: 'team', name: team })
  }
  return grants
}

/** owner names a user or a team, not both (D23). */
export function checkOwner(value: Static<typeof owner> | undefined, path = 'spec.owner'): FieldError[] {
  if (value?.user === '*')
    return [invalidValue(`${path}.user`, '*', 'name one user; access entries share with everyone')]
  return value?.user && value.team ? [fieldForbidden(path, 'user and team are both set; an object has one owner')] : []
}

/** Each verb for each recipient is a right that its author must hold: a write asks so many questions at most. */
const mostGrants = 20_000

/** Rules on access entries that the schema cannot say (D26). */
export function checkAccess(entries: Static<typeof access> | undefined, path = 'spec.access'): FieldError[] {
  const errors: FieldError[] = []
  const grants = (entries ?? []).reduce(
    (sum, { verbs = [], subresources = [], users = [], teams = [] }) =>
      sum + verbs.length * (1 + subresources.length) * Math.max(1, users.length + teams.length),
    0,
  )
  if (grants > mostGrants)
    return [fieldForbidden(path, `grants ${grants} rights in all; at most ${mostGrants} are allowed`)]
  for (const [index, entry] of (entries ?? []).entries()) {
    if (isEnough(errors)) break
    if (entry.verbs?.includes('create'))
      errors.push(
        invalidValue(`${path}[${index}].verbs`, 'create', 'create names no object, so it cannot be granted on one'),
      )
    if (entry.teams?.includes('*'))
      errors.push(invalidValue(`${path}[${index}].teams`, '*', 'name the teams; users: ["*"] is everyone signed in'))
  }
  return errors
}
