// The RBAC rules of each user and group: follows the four RBAC kinds and keeps an index (D27).

import type { Kind, Question } from '../../api/kind.ts'
import type { Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { aggregatedParts } from '../../kinds/aggregation.ts'
import {
  type BindingObject,
  ClusterRole,
  ClusterRoleBinding,
  mirrorLabel,
  Role,
  RoleBinding,
  type RoleObject,
} from '../../kinds/rbac.ts'
import { teamOfGroup, teamUidsOf } from '../../kinds/team-uids.ts'
import { startInformer } from '../../reconcile/informer.ts'
import { type Reach, reachOf } from './rbac-reach.ts'
import { isAbout, type PolicyRule, type RuleIndex } from './rbac-rules.ts'
import { indexRoles, prepareRole } from './role-index.ts'
import { type Holder, openRuleCache } from './rule-cache.ts'

/** A role that a caller has through a binding; `namespace` '' is cluster-wide. `because` explains it as text. */
export type Grant = {
  readonly because: string
  readonly binding: string
  readonly subject: string
  readonly role: string
  readonly roleRef: RoleRef
  readonly namespace: string
} & EffectiveRules

/** `parts`: the same rules by their role, for caches. One role, unless it is aggregated. */
type EffectiveRules = { readonly rules: readonly PolicyRule[]; readonly parts: readonly (readonly PolicyRule[])[] }

type RoleRef = Ref & { readonly kind: string }

export interface Rbac {
  readonly ready: Promise<void>
  /** The grant whose rule allows the question; `verb` replaces that of the question. */
  find(holder: Holder, question: Question, verb?: string): Grant | undefined
  /** The rules of a caller in a namespace, with their source; '' is cluster-wide. */
  index(holder: Holder, namespace: string): RuleIndex<Grant>
  /** All grants that apply in a namespace ('': only cluster-wide ones; absent: those of all namespaces). */
  grants(holder: Holder, namespace?: string): Iterable<Grant>
  /** The objects of a resource that the holder's rules allow one of these verbs on. */
  reach(
    holder: Holder,
    resource: { readonly group: string; readonly resource: string },
    verbs: readonly string[],
  ): Reach
  /** Every binding, for who-can. */
  bindings(): Iterable<Bound>
  /** Everything bound to a group, anywhere. */
  boundTo(group: string): Iterable<{
    readonly rules: readonly PolicyRule[]
    readonly namespace: string
    readonly through: string
    readonly role: RoleRef
  }>
  /** Call when a team changed: results derived from it are stale. */
  forget(): void
  rulesOf(kind: string, ref: Ref): readonly PolicyRule[] | undefined
  stop(): void
}

export type Bound = Ref & {
  readonly roleKind: string
  readonly roleName: string
  readonly users: readonly string[]
  readonly groups: readonly string[]
  /** Whether a name `platform:team:<name>` in the binding refers to the current team of that name, by its uid (D61). */
  readonly means: (name: string, teamUid: (team: string) => string | undefined) => boolean
}
type StoredRole = {
  readonly kind: Kind
  readonly object: Resource & RoleObject
}

export type RbacOptions = {
  readonly resources: Resources
  /** The cluster roles of a team (D26). */
  readonly teamRoles: (team: string) => readonly string[]
  /** The uid of a team that exists. */
  readonly teamUid: (team: string) => string | undefined
  readonly changed: () => void
  readonly failed: (error: unknown) => void
}

export function openRbac({ resources, teamRoles, teamUid, changed, failed }: RbacOptions): Rbac {
  const roles = new Map<string, StoredRole>()
  const compiled = new Map<string, EffectiveRules>()
  const ruleCache = openRuleCache<RuleIndex<Grant>>(teamUid)
  const reached = openRuleCache<Reach>(teamUid)
  const forget = () => {
    ruleCache.forget()
    reached.forget()
  }
  const users = new Map<string, Set<Bound>>()
  const groups = new Map<string, Set<Bound>>()
  const all = new Set<Bound>()

  const informers = [Role, ClusterRole].map(kind =>
    startInformer({
      resources,
      kind,
      failed,
      keep: object => ({ kind, object: object as StoredRole['object'] }),
      changed: (ref, now, before) => {
        if ([now, before].every(one => !one || isInert(one.object))) return
        const slot = slotOf(kind.kind, ref)
        if (now && !isInert(now.object)) roles.set(slot, now)
        else roles.delete(slot)
        // Indexed with the write of the role. Otherwise a request of its first user might have to index many roles.
        if (now?.object.rules && !now.object.aggregationRule) prepareRole(now.object.rules)
        compiled.clear() // any role may be part of an aggregated one
        forget()
        changed()
      },
    }),
  )
  const followers = [RoleBinding, ClusterRoleBinding].map(kind =>
    startInformer({
      resources,
      kind,
      failed,
      keep: object => readBinding(kind, object),
      changed: (_, now, before) => {
        if ([now, before].every(one => !one || isEmpty(one))) return
        if (before) enter(before, false)
        if (now) enter(now, true)
        forget()
        changed()
      },
    }),
  )
  const enter = (bound: Bound, isIn: boolean) => {
    for (const [index, names] of [
      [users, bound.users],
      [groups, bound.groups],
    ] as const)
      for (const name of names) {
        const set = index.get(name) ?? new Set()
        if (isIn) set.add(bound)
        else set.delete(bound)
        if (set.size) index.set(name, set)
        else index.delete(name)
      }
    if (isIn) all.add(bound)
    else all.delete(bound)
  }

  const rulesIn = (slot: string): EffectiveRules | undefined => {
    const known = compiled.get(slot)
    if (known) return known
    const role = roles.get(slot)
    if (!role) return undefined
    const made = effective(role, roles.values())
    compiled.set(slot, made)
    return made
  }
  const grantOf = (bound: Bound, subject: string): Grant | undefined => {
    const ref = { namespace: bound.roleKind === 'Role' ? bound.namespace : '', name: bound.roleName }
    const rules = rulesIn(slotOf(bound.roleKind, ref))
    return (
      rules &&
      madeGrant({
        binding: bound.name,
        role: `${bound.roleKind} ${bound.roleName}`,
        roleRef: { kind: bound.roleKind, ...ref },
        subject,
        namespace: bound.namespace,
        ...rules,
      })
    )
  }
  /** `namespace` undefined: grants of all namespaces. */
  function* grants({ username, groups: member }: Holder, namespace?: string): Iterable<Grant> {
    // A group that is impersonated before its team exists gives nothing.
    const isThere = (name: string, team = teamOfGroup(name)) => team === undefined || teamUid(team) !== undefined
    const counts = (bound: Bound, name: string) =>
      (namespace === undefined || bound.namespace === '' || bound.namespace === namespace) && bound.means(name, teamUid)
    for (const bound of (isThere(username) && users.get(username)) || []) {
      const grant = counts(bound, username) ? grantOf(bound, `user ${username}`) : undefined
      if (grant) yield grant
    }
    for (const group of member) {
      yield* teamGrants(group)
      for (const bound of (isThere(group) && groups.get(group)) || []) {
        const grant = counts(bound, group) ? grantOf(bound, `group ${group}`) : undefined
        if (grant) yield grant
      }
    }
  }
  function* teamGrants(group: string): Iterable<Grant> {
    const team = teamOfGroup(group) ?? ''
    for (const name of team ? teamRoles(team) : []) {
      const rules = rulesIn(slotOf('ClusterRole', { namespace: '', name }))
      const [binding, role, subject] = [`Team ${team}`, `ClusterRole ${name}`, `group ${group}`]
      const roleRef = { kind: 'ClusterRole', namespace: '', name }
      if (rules) yield madeGrant({ binding, role, roleRef, subject, namespace: '', ...rules })
    }
  }

  /** All grants of a caller in a namespace, in one index. Rebuilt after any change of a role or binding. */
  const heldBy = (holder: Holder, namespace: string): RuleIndex<Grant> => {
    const spaces = ruleCache.of(holder)
    const known = spaces.get(namespace)
    if (known) return known
    const made = indexRoles(grants(holder, namespace))
    spaces.set(namespace, made)
    return made
  }

  const reach: Rbac['reach'] = (holder, target, verbs) => {
    const spaces = reached.of(holder)
    const slot = `${verbs.join()} ${target.resource}.${target.group}`
    const known = spaces.get(slot)
    if (known) return known
    const made = reachOf(grants(holder), { key: slot, allows: rule => isAbout(rule, target, verbs) })
    spaces.set(slot, made)
    return made
  }

  const everyone = [...informers, ...followers]
  return {
    ready: Promise.all(everyone.map(informer => informer.ready)).then(() => {}),
    grants,
    index: heldBy,
    find: (holder, question, verb) =>
      heldBy(holder, 'path' in question ? '' : question.target.namespace).find(question, verb)?.from,
    *boundTo(group) {
      for (const { rules, binding, role, roleRef } of teamGrants(group))
        yield { rules, namespace: '', through: `${binding} of ${role}`, role: roleRef }
      // A key of a team has the team's group for a username, too (D16).
      for (const bound of [...(groups.get(group) ?? []), ...(users.get(group) ?? [])]) {
        const grant = bound.means(group, teamUid) ? grantOf(bound, `group ${group}`) : undefined
        if (!grant) continue
        const { rules, binding, role, roleRef } = grant
        yield { rules, namespace: bound.namespace, through: `${binding} of ${role}`, role: roleRef }
      }
    },
    bindings: () => all,
    reach,
    forget,
    rulesOf: (kind, ref) => rulesIn(slotOf(kind, ref))?.rules,
    stop: () => {
      for (const informer of everyone) informer.stop()
    },
  }
}

const madeGrant = (grant: Omit<Grant, 'because'>): Grant => ({
  ...grant,
  because: `allowed by ${grant.binding} of ${grant.role} to ${grant.subject}`,
})

const slotOf = (kind: string, { namespace, name }: Ref) => `${kind}/${namespace}/${name}`

/**
 * Objects that grant nothing: mirrors of access entries, which a controller writes and which refer to their object by name (D26),
 * and objects that are being deleted. Otherwise a finalizer could keep a removed permission alive.
 */
const isInert = ({ metadata }: Resource) =>
  metadata.labels?.[mirrorLabel] !== undefined || metadata.deletionTimestamp !== undefined

const isEmpty = ({ users, groups }: Bound) => users.length + groups.length === 0

function readBinding(kind: Kind, object: Resource): Bound {
  const { roleRef, subjects = [] } = object as BindingObject
  const uids = teamUidsOf(object)
  const named = (word: string) =>
    (isInert(object) ? [] : subjects).flatMap(one => (one.kind === word ? [one.name ?? ''] : []))
  return {
    name: `${kind.kind} ${object.metadata.name}`,
    namespace: object.metadata.namespace ?? '',
    roleKind: roleRef?.kind ?? '',
    roleName: roleRef?.name ?? '',
    users: named('User'),
    groups: named('Group'),
    means: (name, teamUid) => {
      const team = teamOfGroup(name)
      return team === undefined || !Object.hasOwn(uids, team) || uids[team] === teamUid(team)
    },
  }
}

/** The rules of the role, or of all cluster roles that its selectors match. */
function effective({ kind, object }: StoredRole, all: Iterable<StoredRole>): EffectiveRules {
  if (kind !== ClusterRole || !object.aggregationRule) {
    const { rules = noRules } = object
    return { rules, parts: [rules] }
  }
  const others = [...all].flatMap(one => (one.kind === ClusterRole ? [one.object] : []))
  const parts = aggregatedParts(object, others)
  return { rules: parts.flat(), parts }
}

const noRules: readonly PolicyRule[] = []
