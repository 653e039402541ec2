// Defines schemas that several kinds share: owner, access entries, scope, conditions (SPEC §2.7, §2.8; D23).

import type { Caller } from '../api/caller.ts'
import { memberTerm, userTerm } from '../api/candidates.ts'
import { canonical } from '../api/encode.ts'
import { type FieldError, fieldForbidden, invalidValue, isEnough, required } from '../api/errors.ts'
import type { Grant, Recipient } from '../api/grant.ts'
import type { ObjectPermission, PermissionSubject } from '../api/kind.ts'
import type { Json, Resource } from '../api/object.ts'
import {
  closed,
  flag,
  integer,
  list,
  longText,
  mapList,
  oneOf,
  type Static,
  struct,
  text,
  time,
} from '../api/schema.ts'
import { teamMatcher, teamOfGroup } from './team-uids.ts'

export const owner = struct('Owner of the object: a user or a team. Defaults to the creator.', {
  user: text('The user who owns it.'),
  team: text('The team that owns it.', { maxLength: 253 }),
})

/** An object has one owner (D23). */
export const oneOwner = { 'spec.owner': ['user', 'team'] } as const

const accessEntry = struct(
  'Access rights for users and teams.',
  {
    name: text('Optional name of the rule.'),
    verbs: list(text(''), 'Verbs granted on the object; * is every verb.'),
    subresources: list(text(''), 'Sub-resources the verbs extend to.'),
    users: list(text(''), 'Users who get these verbs; * is every authenticated user.'),
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
  'A managed permission, optionally limited to projects or virtual clusters.',
  {
    // Not an enum: stored keys may have other roles, which grant nothing, and stay updatable (D23).
    role: text('Name of the role: agent, metrics-reader or platform-cli.'),
    projects: list(text(''), 'Projects that the role is limited to.'),
    virtualClusters: list(text(''), 'Virtual clusters that the role is limited to.'),
  },
  [],
  closed,
)

const resourceRule = struct(
  'Resources matched.',
  {
    group: text('API group; empty is the core group.'),
    resources: list(text(''), 'Names such as <kind>, <kind>/<sub>, *, <kind>/*, */<sub>. Empty: all of the group.'),
    resourceNames: list(text(''), 'Instance names; requires resources. Empty: every instance.'),
  },
  [],
  closed,
)

const rule = struct(
  'A rule; deprecated in favour of projects, spaces and virtualClusters.',
  {
    verbs: list(text(''), 'Verbs matched. Empty: every verb.'),
    resources: list(resourceRule, 'Resources matched. Empty: all.'),
    namespaces: list(
      text(''),
      'Matching namespaces; the empty string matches cluster-scoped resources. Empty list: every namespace.',
    ),
    nonResourceURLs: list(text(''), 'URL paths; * only as the whole last segment.'),
    requestTargets: list(
      oneOf(['Management', 'Cluster', 'ProjectSpace', 'ProjectVirtualCluster'], ''),
      'Allowed request targets. Empty: every request.',
    ),
    cluster: text('Cluster that the rule matches; when set, other requests are not allowed.'),
    virtualClusters: list(
      struct(
        'A virtual cluster.',
        { name: text('Name of the virtual cluster.'), namespace: text('Namespace of the virtual cluster.') },
        [],
        closed,
      ),
      'Virtual clusters that the rule matches. Empty: no restriction.',
    ),
  },
  [],
  closed,
)

export const scope = struct(
  'Restrictions of the key or token. An empty scope restricts nothing.',
  {
    roles: list(role, 'Managed permissions to apply.'),
    projects: list(
      struct(
        'A project.',
        {
          project: text('Name of the project; * selects all.'),
          readOnly: flag('When true, only get, list and watch are allowed.'),
        },
        [],
        closed,
      ),
      'Projects that may be accessed.',
    ),
    secrets: list(
      struct(
        'A SharedSecret of a namespace, or a ProjectSecret of a project.',
        {
          namespace: text('Namespace of a SharedSecret.'),
          project: text('Project of a ProjectSecret.'),
          name: text('Name of the secret.'),
        },
        [],
        closed,
      ),
      'Secrets that may be read with get, and nothing else of them.',
    ),
    spaces: list(target('A space of a project.', ['project', 'space']), 'Spaces that may be accessed.'),
    virtualClusters: list(
      target('A virtual cluster of a project.', ['project', 'virtualCluster']),
      'Virtual clusters that may be accessed.',
    ),
    clusters: list(target('A cluster.', ['cluster']), 'Clusters that may be accessed.'),
    rules: list(rule, 'Deprecated: use projects, spaces and virtualClusters.', { deprecated: true }),
    allowPlatformCli: flag('Deprecated: use the role platform-cli, which is the same.', {
      deprecated: true,
    }),
  },
  [],
  closed,
)

export const conditions = mapList(
  struct(
    'A condition of the object.',
    {
      type: text('Type of the condition.'),
      status: text('True, False or Unknown.'),
      severity: text('Severity if the status is not True.'),
      lastTransitionTime: time('Last time the status changed.'),
      reason: text('Machine-readable reason.'),
      message: longText('Human-readable message.'),
    },
    ['type', 'status'],
  ),
  ['type'],
  'Conditions of the object.',
)

export const observedGeneration = integer('The generation of the object that the conditions describe.')

type Owner = { readonly user?: string | undefined; readonly team?: string | undefined }
type Owned = { owner?: Static<typeof owner> | undefined }

/** The default owner of an object: the user or team that creates it. */
export function callerAsOwner({ identity, username }: Caller): Owner {
  if (identity === 'User') return { user: username }
  const team = identity === 'Team' ? teamOfGroup(username) : undefined
  return team === undefined ? {} : { team }
}

/**
 * Without an owner, a new object belongs to its creator, or to the team of the creator's key. An update keeps the
 * stored owner (D23).
 */
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

/** The owner has every verb. Access entries grant theirs (D26). */
export function sharedRights(
  object: Resource<Shared, unknown>,
  { username, teams }: PermissionSubject,
): ObjectPermission[] {
  const { owner: whose, access: entries = [] } = object.spec ?? {}
  const means = teamMatcher(object)
  // Somebody may impersonate the group of a team that does not exist.
  const isIn = (team: string) => teams.get(team) !== undefined && means(team, teams.get(team))
  const is = (user: string) => {
    const team = user === username ? teamOfGroup(user) : undefined
    return team === undefined ? user === username : isIn(team)
  }
  const owns = whose?.user ? is(whose.user) : whose?.team !== undefined && isIn(whose.team)
  const rights: ObjectPermission[] = owns
    ? [{ verbs: ['*'], subresources: ['*'], because: 'the caller owns the object', isOwner: true }]
    : []
  for (const [index, entry] of entries.entries()) {
    const byUser = entry.users?.includes('*') || entry.users?.some(is)
    if (!byUser && !entry.teams?.some(isIn)) continue
    const because = `spec.access[${index}] of the object`
    rights.push({ verbs: entry.verbs ?? [], subresources: entry.subresources ?? [], because })
  }
  return rights
}

/** Everyone who may get a right from `sharedRights`. */
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

/** The username of a team belongs to its keys. Its members do not have it (D16). */
export function userNamed(name: string): Recipient {
  const team = teamOfGroup(name)
  return team === undefined ? { kind: 'user', name } : { kind: 'team', name: team, keysOnly: true }
}

/** The permissions that the owner and access entries grant (D60); with `only`, those to one recipient. */
export function sharedGrants({ spec }: Resource<Shared, unknown>, only?: Recipient): Grant[] {
  const { owner: whose, access: entries = [] } = spec ?? {}
  const grants: Grant[] = []
  const isWanted = ({ kind, name }: Recipient) => !only || (only.kind === kind && only.name === name)
  if (whose?.user || whose?.team) {
    const to: Recipient = whose.user ? userNamed(whose.user) : { kind: 'team', name: whose.team ?? '' }
    if (isWanted(to)) grants.push({ type: 'owner', field: 'spec.owner', to })
  }
  for (const [index, { verbs = [], subresources = [], users = [], teams = [] }] of entries.entries()) {
    const give = (to: Recipient) => {
      if (isWanted(to)) grants.push({ type: 'object', field: `spec.access[${index}]`, to, verbs, subresources })
    }
    for (const user of users) give(userNamed(user))
    for (const team of teams) give({ kind: 'team', name: team })
  }
  return grants
}

/** An owner is a user or a team, not both (D23). */
export function checkOwner(value: Static<typeof owner> | undefined, path = 'spec.owner'): FieldError[] {
  if (value?.user === '*')
    return [invalidValue(`${path}.user`, '*', 'must be one user; use access entries to share with everyone')]
  return value?.user && value.team ? [fieldForbidden(path, 'user and team are both set; an object has one owner')] : []
}

/** The author needs each verb for each recipient, so this limits the checks of one write. */
const maxGrants = 20_000

const isSameEntry = (one: Static<typeof accessEntry>, other: Static<typeof accessEntry>) =>
  canonical(one as Json) === canonical(other as Json)

/** Validates access entries beyond their schema (D26). */
export function checkAccess(
  entries: Static<typeof access> | undefined,
  stored: Static<typeof access> | undefined,
  path = 'spec.access',
): FieldError[] {
  const errors: FieldError[] = []
  const grants = (entries ?? []).reduce(
    (sum, { verbs = [], subresources = [], users = [], teams = [] }) =>
      sum + verbs.length * (1 + subresources.length) * Math.max(1, users.length + teams.length),
    0,
  )
  if (grants > maxGrants)
    return [fieldForbidden(path, `grants ${grants} rights in all; at most ${maxGrants} are allowed`)]
  for (const [index, entry] of (entries ?? []).entries()) {
    if (isEnough(errors)) break
    // Earlier versions stored entries without verbs. They grant nothing, and the object stays updatable.
    if (!entry.verbs?.length && !stored?.some(one => isSameEntry(one, entry)))
      errors.push(required(`${path}[${index}].verbs`, 'must contain at least one verb'))
    if (entry.verbs?.includes('create'))
      errors.push(invalidValue(`${path}[${index}].verbs`, 'create', 'create cannot be granted on a single object'))
    if (entry.teams?.includes('*'))
      errors.push(
        invalidValue(`${path}[${index}].teams`, '*', 'must be team names; users: ["*"] means every authenticated user'),
      )
  }
  return errors
}
