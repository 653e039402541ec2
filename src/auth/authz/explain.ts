// Explains a decision of the authorizer: its steps, and the permissions that nearly allow it (D27).

import type { Caller } from '../../api/caller.ts'
import type { Kind, Question } from '../../api/kind.ts'
import type { Ref, Resource } from '../../api/object.ts'
import type { Explained, TeamPermissions } from '../../api/permissions.ts'
import { teamOfGroup } from '../../kinds/team-uids.ts'
import type { AccessKey, AccessKeyIndex } from '../authn/access-key-index.ts'
import type { TeamIndex } from '../authn/team-index.ts'
import { type Authorizer, actOf } from './authorize.ts'
import type { Rbac } from './rbac.ts'
import type { PolicyRule } from './rbac-rules.ts'
import { allows } from './scope.ts'
import type { Act } from './scope-rules.ts'
import { unknownIn } from './unknown-resource.ts'

export type ExplainOptions = {
  readonly authorizer: Authorizer
  readonly rbac: Rbac
  readonly teams: TeamIndex
  readonly keyIndex: AccessKeyIndex
  readonly kinds: readonly Kind[]
  readonly peek: (kind: Kind, ref: Ref) => Resource | undefined
  /** Whether a key is valid now. */
  readonly isLive: (key: AccessKey) => boolean
}

export interface Explainer {
  explain(caller: Caller, question: Question): Explained
  whoCan(question: Question): readonly string[]
  permissionsOf(team: string): TeamPermissions
  /** A user as a caller, with the groups of their valid keys (D17). */
  callerNamed(user: string): Caller
  /** An owner as a caller; a team like one of its keys. undefined: no owner, or a team that does not exist. */
  callerOf(owner: OwnerRef): Caller | undefined
}

/** `uid`: of the team with that name, if known (D61). */
export type OwnerRef = {
  readonly user?: string | undefined
  readonly team?: string | undefined
  readonly uid?: string | undefined
}

const teamGroup = 'platform:team:'

/** An explanation is for people. A user can have very many rules and names. */
const maxNearMisses = 20
const maxNames = 10

const listNames = (names: readonly string[]) =>
  names.length > maxNames
    ? `${names.slice(0, maxNames).join(', ')} and ${names.length - maxNames} more`
    : names.join(', ')

export function openExplainer({ authorizer, rbac, teams, keyIndex, kinds, peek, isLive }: ExplainOptions): Explainer {
  const callerNamed = (user: string): Caller => {
    const groups = new Set(['system:authenticated', `platform:user:${user}`])
    // The groups of a machine count only with its key, as with its token.
    for (const key of keyIndex.ofUser(user))
      if (!key.machine && isLive(key)) for (const group of keyIndex.groupsOf(key)) groups.add(group)
    for (const team of teams.of(user, [...groups])) groups.add(teamGroup + team)
    return { identity: 'User', username: user, groups: [...groups] }
  }

  const membership = (caller: Caller): string[] =>
    caller.groups.flatMap(group => {
      const team =
        group.startsWith(teamGroup) && caller.identity === 'User' ? teams.get(group.slice(teamGroup.length)) : undefined
      if (!team) return []
      const via = team.users.includes(caller.username)
        ? 'spec.users'
        : `group ${team.groups.find(one => caller.groups.includes(one))}`
      return [`member of team ${team.name} through ${via}`]
    })

  /** Roles for the same resource, with the permissions they grant instead. */
  const nearMisses = (caller: Caller, act: Act): string[] => {
    if ('path' in act) return []
    const { resource, subresource } = act
    const words = subresource ? [`${resource}/${subresource}`, `${resource}/*`, `*/${subresource}`] : [resource]
    const about = (rule: PolicyRule) =>
      rule.resources?.some(one => one === '*' || words.includes(one)) &&
      rule.apiGroups?.some(one => one === act.group || one === '*')
    // Counts a role once, regardless of the number of its bindings.
    const roles = new Map<readonly PolicyRule[], string>()
    for (const { rules, role } of rbac.grants(caller, act.namespace)) roles.set(rules, role)
    const found: string[] = []
    for (const [rules, role] of roles)
      for (const rule of rules) {
        if (found.length === maxNearMisses) return found
        if (!about(rule)) continue
        const names = rule.resourceNames?.length ? ` only on ${listNames(rule.resourceNames)}` : ''
        found.push(
          `${role} grants ${rule.verbs?.join(', ')}${names}, not ${act.verb}${act.name ? ` on ${act.name}` : ''}`,
        )
      }
    return found
  }

  return {
    callerNamed,
    callerOf({ user, team: named = '', uid }) {
      // The username of a team's keys means that team (D16).
      const team = user ? teamOfGroup(user) : named
      if (user && team === undefined) return callerNamed(user)
      const record = team ? teams.get(team) : undefined
      if (!record || record.isTerminating || (uid !== undefined && uid !== record.uid)) return undefined
      const username = teamGroup + team
      return { identity: 'Team', username, groups: ['system:authenticated', username] }
    },
    explain(caller, question) {
      const act = actOf(question)
      const decision = authorizer.decide(caller, question)
      const covered = allows(caller.scope, { target: 'Management', act })
      const steps = [
        ...(caller.key ? [`access key ${caller.key}`] : caller.issuer ? [`token of issuer ${caller.issuer}`] : []),
        `acts as ${caller.username}`,
        ...membership(caller),
        // A user can have many keys or none. A scope belongs to one key, so it does not apply to a question about a user.
        ...(caller.key || caller.scope ? [`scope: ${covered ?? 'no entry covers the request'}`] : []),
        decision.allowed ? decision.reason : 'no role, binding or right of the object allows it',
      ]
      const near = decision.allowed || !covered ? [] : nearMisses(caller, act)
      return { ...decision, steps, nearMisses: near, unknown: unknownIn(question, kinds) }
    },
    whoCan(question) {
      const found = new Set<string>()
      for (const { label, ...subject } of candidates(question, { rbac, teams, kinds, peek })) {
        const { allowed, reason } = authorizer.decide(subject, question)
        if (allowed) found.add(`${label} by ${reason.replace(/^allowed by (.*) of .* to .*$/, '$1')}`)
      }
      return [...found].sort()
    },
    permissionsOf(name) {
      const team = teams.get(name)
      const members = new Map((team?.users ?? []).map(user => [user, 'spec.users']))
      const positions = new Map(team?.groups.map((group, index) => [group, index]))
      for (const key of positions.size ? keyIndex.all() : []) {
        if (!key.user || members.has(key.user)) continue
        const shared = keyIndex.groupsOf(key).flatMap(group => positions.get(group) ?? [])
        if (shared.length && isLive(key)) members.set(key.user, `group ${team?.groups[Math.min(...shared)]}`)
      }
      const grants = [...rbac.boundTo(teamGroup + name)]
      const pulled = [...(team?.pulled.values() ?? [])].map(target => ({
        rule: {
          verbs: ['get'],
          apiGroups: [target.group],
          resources: [target.resource],
          resourceNames: [target.name],
        },
        namespace: target.namespace,
        through: `spec.imagePullSecrets of Team ${name}`,
      }))
      return {
        members: [...members].map(([user, via]) => ({ user, via })),
        permissions: [
          ...grants.flatMap(({ rules, namespace, through }) => rules.map(rule => ({ rule, namespace, through }))),
          ...pulled,
        ],
      }
    },
  }
}

type Candidate = Caller & { readonly label: string }

/** All users and teams with any permission. The authorizer then decides which of them have this one. */
function* candidates(
  question: Question,
  { rbac, teams, kinds, peek }: Pick<ExplainOptions, 'rbac' | 'teams' | 'kinds' | 'peek'>,
): Iterable<Candidate> {
  const user = (name: string): Candidate =>
    name === '*'
      ? group('system:authenticated')
      : { identity: 'User', username: name, groups: [], label: `user ${name}` }
  const group = (name: string): Candidate => ({ username: '', groups: [name], label: `group ${name}` })
  const namespace = 'path' in question ? '' : question.target.namespace
  for (const bound of rbac.bindings()) {
    if (bound.namespace !== '' && bound.namespace !== namespace) continue
    yield* bound.users.map(user)
    yield* bound.groups.map(group)
  }
  for (const team of teams.all()) if (team.clusterRoles.length || team.pulled.size) yield group(teamGroup + team.name)
  for (const { name, isTeam } of namedIn(question, kinds, peek)) yield isTeam ? group(teamGroup + name) : user(name)
}

type Named = { readonly name: string; readonly isTeam: boolean }

/** The users and teams that the object names, as owner, in its access entries, or in the team it belongs to. */
function namedIn(question: Question, kinds: readonly Kind[], peek: ExplainOptions['peek']): Named[] {
  if ('path' in question || !question.target.name) return []
  const { group, resource, namespace, name } = question.target
  const kind = kinds.find(one => one.plural === resource && one.group === group)
  const object = kind?.stored ? peek(kind, { namespace, name }) : undefined
  const { owner, access, user, team } = (object?.spec ?? {}) as {
    owner?: { user?: string; team?: string }
    access?: { users?: string[]; teams?: string[] }[]
    user?: string
    team?: string
  }
  const users = [owner?.user, user, ...(access ?? []).flatMap(entry => entry.users ?? [])]
  const itself = resource === 'teams' ? name : undefined
  const named = [owner?.team, team, itself, ...(access ?? []).flatMap(entry => entry.teams ?? [])]
  const above = team ? { verb: 'update', target: { group, resource: 'teams', namespace: '', name: team } } : undefined
  return [
    ...users.flatMap(one => (one ? [{ name: one, isTeam: false }] : [])),
    ...named.flatMap(one => (one ? [{ name: one, isTeam: true }] : [])),
    ...(above ? namedIn(above, kinds, peek) : []),
  ]
}
