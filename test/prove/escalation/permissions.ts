// The permissions of a principal according to the model: roles, owners, access entries, membership (D15, D23, D26, D27), as bits or for one request.

import { type Rule, ruleCovers } from '../../access/evaluator.ts'
import type { Principal } from './credentials.ts'
import { matches, rolesElsewhere } from './flows.ts'
import type { Known, Model } from './model.ts'
import { kinds, mirrorLabel, type Obj, ours, type PolicyRule, teamGroup } from './objects.ts'
import {
  type Atom,
  addBits,
  atoms,
  atomsOn,
  type Bits,
  bitsOf,
  hasBit,
  indexOf,
  noBits,
  placeOf,
  setBit,
} from './universe.ts'

export type Rights = {
  bitsOf(principal: Principal): Bits
  /** Whether a principal may do something, also outside of the universe. */
  may(principal: Principal, ask: Atom): boolean
  /** The same, if the object of that name had this state. */
  mayOn(principal: Principal, object: Known, ask: Atom): boolean
  /** The rules of a cluster role, including aggregated ones. */
  bitsOfRole(role: Known): Bits
}

type Held = { readonly rule: PolicyRule; readonly namespace: string }
/** The permissions that an object itself grants to a principal. */
type Grant = {
  readonly verbs: readonly string[]
  readonly subresources: readonly string[]
  /** Not the object itself. */
  readonly subresourcesOnly?: true
}

export function openRights(model: Model): Rights {
  let version = -1
  const known = new Map<string, { readonly held: readonly Held[]; readonly bits: Bits }>()
  const roles = new Map<string, readonly PolicyRule[]>()

  const fresh = () => {
    if (version === model.version) return
    version = model.version
    known.clear()
    roles.clear()
  }

  function rulesOf(role: Known): readonly PolicyRule[] {
    if (isGoing(role)) return []
    const there = roles.get(role.uid)
    if (there) return there
    const made = role.object.aggregationRule ? aggregated(role, model.of(kinds.ClusterRole)) : (role.object.rules ?? [])
    roles.set(role.uid, made)
    return made
  }

  function heldBy(principal: Principal): Held[] {
    const held: Held[] = []
    const bound = (name: string, namespace: string) => {
      const role = model.get(kinds.ClusterRole, '', name)
      if (role) for (const rule of rulesOf(role)) held.push({ rule, namespace })
    }
    for (const kind of [kinds.ClusterRoleBinding, kinds.RoleBinding])
      for (const binding of model.of(kind)) {
        const { roleRef, subjects = [], metadata } = binding.object
        // A mirror is only informational: the mirrored object itself grants.
        if (!roleRef || metadata.labels?.[mirrorLabel] !== undefined || isGoing(binding)) continue
        const isMeant = subjects.some(
          ({ kind: word, name }) =>
            (word === 'User' ? name === principal.username : word === 'Group' && principal.groups.has(name)) &&
            isCurrent(model, binding, name),
        )
        if (!isMeant) continue
        if (roleRef.kind === 'ClusterRole') bound(roleRef.name, binding.namespace)
        else {
          const role = model.get(kinds.Role, binding.namespace, roleRef.name)
          if (role) for (const rule of rulesOf(role)) held.push({ rule, namespace: binding.namespace })
        }
      }
    // As in Kubernetes, the group may do everything. Only impersonation leads into it.
    if (principal.groups.has('system:masters'))
      held.push(
        { rule: { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, namespace: '' },
        { rule: { verbs: ['*'], nonResourceURLs: ['*'] }, namespace: '' },
      )
    for (const team of principal.teams)
      for (const { name, clusters } of model.get(kinds.Team, '', team)?.object.spec?.clusterRoles ?? [])
        if (clusters === undefined) bound(name, '')
    return held
  }

  function recordOf(principal: Principal) {
    fresh()
    const name = JSON.stringify([principal.username, [...principal.groups]])
    const there = known.get(name)
    if (there) return there
    const held = heldBy(principal)
    const bits = noBits()
    for (const { rule, namespace } of held) addBits(bits, bitsOfRule(rule, namespace))
    for (const team of principal.teams) {
      const found = model.get(kinds.Team, '', team)
      for (const role of found ? rolesElsewhere(model, found) : []) setUse(bits, role)
    }
    for (const kind of [kinds.Team, kinds.SharedSecret, kinds.ProjectSecret, kinds.User, kinds.Cluster])
      for (const object of model.of(kind))
        for (const grant of grantsOf(model, object, principal)) addBits(bits, bitsOfGrant(object, grant))
    for (const key of model.of(kinds.OwnedAccessKey))
      if (ownsKey(key.object, principal, team => mayUpdate(bits, team))) addBits(bits, bitsOfGrant(key, whole))
    const made = { held, bits }
    known.set(name, made)
    return made
  }

  return {
    bitsOfRole(role) {
      fresh()
      const bits = noBits()
      for (const rule of rulesOf(role)) addBits(bits, bitsOfRule(rule, ''))
      return bits
    },
    bitsOf: principal => recordOf(principal).bits,
    mayOn: (principal, object, ask) =>
      recordOf(principal).held.some(({ rule, namespace }) => covers(rule, namespace, ask)) ||
      grantsOf(model, object, principal).some(grant => grantCovers(grant, ask)),
    may(principal, ask) {
      const { held, bits } = recordOf(principal)
      if (held.some(({ rule, namespace }) => covers(rule, namespace, ask))) return true
      const kind = Object.values(kinds).find(one => one.plural === ask.resource && one.group === ask.group)
      const object = kind && ask.name ? model.get(kind, ask.namespace, ask.name) : undefined
      if (!object || isNew(ask)) return false
      if (kind === kinds.OwnedAccessKey) return ownsKey(object.object, principal, team => mayUpdate(bits, team))
      return grantsOf(model, object, principal).some(grant => grantCovers(grant, ask))
    },
  }
}

/** Roles of connected clusters that the universe does not have are not compared. */
function setUse(bits: Bits, name: string): void {
  const index = placeOf({ verb: 'use', group: ours, resource: 'clusters', sub: 'clusterroles', name })
  if (index >= 0) setBit(bits, index)
}

/** A role or binding that is being deleted grants nothing (D60). */
const isGoing = ({ object }: Known) => object.metadata.deletionTimestamp !== undefined

const whole: Grant = { verbs: ['*'], subresources: ['*'] }
const isNew = ({ verb, sub }: Atom) => verb === 'create' && sub === ''
const isPersonal = ({ group, resource }: Atom) => group === ours && resource === 'ownedaccesskeys'

/** A team group counts only if the object refers to the current team of that name (D61). */
const isCurrent = (model: Model, object: Known, name: string) =>
  !name.startsWith(teamGroup) || model.means(object, name.slice(teamGroup.length))

function mayUpdate(bits: Bits, team: string): boolean {
  const index = teamUpdates.get(team)
  return index !== undefined && hasBit(bits, index)
}
const teamUpdates = new Map(
  ['red', 'blue', 'green'].map(name => [name, indexOf({ verb: 'update', group: ours, resource: 'teams', name })]),
)

/** The user's own keys, and those of teams that the user may update (D15). */
function ownsKey({ spec = {} }: Obj, { username }: Principal, updates: (team: string) => boolean): boolean {
  if (spec.user) return spec.user === username
  return spec.team !== undefined && updates(spec.team)
}

function grantsOf(model: Model, object: Known, { username, teams }: Principal): Grant[] {
  const { owner, access = [] } = object.object.spec ?? {}
  const grants: Grant[] = []
  const isTeam = (name: string) => teams.has(name) && model.means(object, name)
  if (owner?.user ? owner.user === username && isCurrent(model, object, username) : owner?.team && isTeam(owner.team))
    grants.push(whole)
  for (const { verbs = [], subresources = [], users = [], teams: named = [] } of access)
    if (users.includes('*') || (users.includes(username) && isCurrent(model, object, username)) || named.some(isTeam))
      grants.push({ verbs, subresources })
  if (object.kind === kinds.User && object.object.spec?.username === username)
    grants.push({ verbs: ['get'], subresources: [] })
  if (object.kind === kinds.Team && teams.has(object.name))
    grants.push({ verbs: ['get'], subresources: ['permissions'] })
  if (object.kind === kinds.Cluster && username === agentOf(object)) grants.push(...ofAgent)
  if (isPullable(object) && [...teams].some(team => model.pulls(team, object)))
    grants.push({ verbs: ['get'], subresources: [] })
  return grants
}

/** The username of the agents of a cluster. */
export const agentOf = ({ name, uid }: Known): string => `platform:cluster:${name}:${uid}`
/** An agent reads what concerns its cluster, and reports (D68). */
const ofAgent: readonly Grant[] = [
  { verbs: ['get', 'watch'], subresources: ['desired'], subresourcesOnly: true },
  { verbs: ['get', 'update', 'patch'], subresources: ['status'], subresourcesOnly: true },
]

const isPullable = ({ kind }: Known) => kind === kinds.SharedSecret || kind === kinds.ProjectSecret

const has = (list: readonly string[], word: string) => list.includes('*') || list.includes(word)
const grantCovers = ({ verbs, subresources, subresourcesOnly }: Grant, { verb, sub }: Atom) =>
  has(verbs, verb) && (sub === '' ? !subresourcesOnly : has(subresources, sub))

const grantBits = new Map<string, Bits>()
function bitsOfGrant({ kind, namespace, name }: Known, grant: Grant): Bits {
  const text = `${kind.plural}/${namespace}/${name}/${grant.verbs.join()}/${grant.subresources.join()}/${grant.subresourcesOnly}`
  const there = grantBits.get(text)
  if (there) return there
  const made = noBits()
  for (const index of atomsOn(kind.plural, namespace, name).indexes) {
    const one = atoms[index] as Atom
    if (!isNew(one) && grantCovers(grant, one)) setBit(made, index)
  }
  if (grantBits.size > 20_000) grantBits.clear()
  grantBits.set(text, made)
  return made
}

/** A rule applies in the namespace of its binding. Keys of others need every verb (D15). */
function covers(rule: PolicyRule, namespace: string, ask: Atom): boolean {
  if (namespace !== '' && ask.namespace !== namespace) return false
  if (ask.path) return namespace === '' && coversPath(rule, ask)
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [] } = rule
  const whole: Rule = { verbs, apiGroups, resources, resourceNames }
  return ruleCovers(whole, isPersonal(ask) && !isNew(ask) ? { ...ask, verb: '*' } : ask)
}

const coversPath = ({ verbs = [], nonResourceURLs = [] }: PolicyRule, { verb, path }: Atom) =>
  has(verbs, verb) &&
  nonResourceURLs.some(url => url === '*' || url === path || (url.endsWith('/*') && path.startsWith(url.slice(0, -1))))

const ruleBits = new Map<string, Bits>()
function bitsOfRule(rule: PolicyRule, namespace: string): Bits {
  const text = namespace + JSON.stringify(rule)
  const there = ruleBits.get(text)
  if (there) return there
  const made = bitsOf(one => covers(rule, namespace, one))
  if (ruleBits.size > 20_000) ruleBits.clear()
  ruleBits.set(text, made)
  return made
}

/** The rules of all roles that a selector matches. An aggregated role counts with all roles that it selects. */
function aggregated(role: Known, all: readonly Known[]): readonly PolicyRule[] {
  const rules: PolicyRule[] = []
  const seen = new Set<string>()
  const take = (one: Known): void => {
    const { uid, object } = one
    if (seen.has(uid) || isGoing(one)) return
    seen.add(uid)
    if (!object.aggregationRule) return void rules.push(...(object.rules ?? []))
    for (const other of all)
      if (object.aggregationRule.clusterRoleSelectors?.some(one => matches(one, other.object.metadata.labels ?? {})))
        take(other)
  }
  take(role)
  return rules
}
