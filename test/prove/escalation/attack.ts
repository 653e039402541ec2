// The next step of an attacker: mostly an allowed request with a body that asks for slightly more.

import {
  type Actor,
  bitsOf,
  chooseActor,
  isBounded,
  isInPool,
  isScoped,
  namesOf,
  namespacesOf,
  reborn,
  stepOf,
  tagged,
} from './actor.ts'
import { without, withSpec } from './aspects/aspect.ts'
import { clusters } from './aspects/clusters.ts'
import { reportAsAgent } from './attack-clusters.ts'
import { bringKey, makeKey, mint, rotate } from './attack-keys.ts'
import { read } from './attack-reads.ts'
import { link, touchSession } from './attack-sign-in.ts'
import { draft } from './drafts.ts'
import { bodyOf, visibleOf } from './encode.ts'
import { rate, type Stage } from './generator-context.ts'
import { type Mutation, mutate } from './mutations.ts'
import { byPlural, type KindInfo, kinds, type Obj, rbac } from './objects.ts'
import type { Method, Step } from './step.ts'
import { atoms, hasBit, noBits, placeOf } from './universe.ts'

export function attack(stage: Stage): Step | undefined {
  const { chance, enabled, prover } = stage
  const actor = chooseActor(stage)
  if (!actor) return undefined
  const make = chance.weighted<(stage: Stage, actor: Actor) => Step | undefined>([
    [50, change],
    [rate(stage, 'lifetime', { often: 16, seldom: 4 }), relaxKey],
    [rate(stage, 'ownership', { often: 14, seldom: 2 }), takeOwnership],
    [16, create],
    [7, remove],
    [rate(stage, 'users', { often: 6, seldom: 2 }), removeUser],
    [rate(stage, 'users', { often: 12, seldom: 0 }), changeUser],
    [rate(stage, 'clusters', { often: 18, seldom: 0 }), changeCluster],
    [7 + rate(stage, 'sessions', { often: 10, seldom: 0 }), rotate],
    [9, makeKey],
    [rate(stage, 'brought-keys', { often: 10, seldom: 2 }), bringKey],
    [enabled.has('token-overlap') ? 6 : 1, mint],
    [isScoped(actor) ? 22 : 11, read],
    [prover.model.of(kinds.Cluster).length ? 5 : 0, reportAsAgent],
    [rate(stage, 'users', { often: 12, seldom: 4 }), link],
    [
      rate(stage, 'sessions', { often: 30, seldom: 2 }) + rate(stage, 'machines', { often: 20, seldom: 2 }),
      touchSession,
    ],
  ])
  return make({ ...stage, holds: bitsOf(stage, actor) }, actor)
}

type Target = {
  readonly kind: KindInfo
  readonly namespace: string
  readonly name: string
  readonly verb: string
  /** undefined: any change. */
  readonly mutation?: (object: Obj) => Mutation
}

/** An object on which the actor has one of these verbs. Chooses the kind first, so that frequent kinds do not dominate. */
function chooseTarget({ chance, holds = noBits() }: Stage, verbs: readonly string[]): Target {
  if (chance.is(0.9)) {
    const open = atoms.filter((one, index) => one.sub === '' && verbs.includes(one.verb) && hasBit(holds, index))
    const plurals = [...new Set(open.map(one => one.resource))].filter(one => byPlural.has(one))
    // Everybody can write keys. Other permissions are rarer and more interesting.
    const rarer = plurals.filter(one => one !== 'ownedaccesskeys')
    const plural = chance.any(chance.is(0.7) && rarer.length ? rarer : plurals)
    const atom = chance.any(open.filter(one => one.resource === plural))
    const kind = byPlural.get(plural ?? '')
    if (atom && kind) return { kind, namespace: atom.namespace, name: atom.name, verb: atom.verb }
  }
  const kind = chance.pick(Object.values(kinds).filter(one => one !== kinds.TokenRevocation))
  return { kind, namespace: chance.pick(namespacesOf(kind)), name: '', verb: chance.pick(verbs) }
}

/** JSON is also YAML: the server parses a body by its content type. */
const yaml = { headers: { 'content-type': 'application/yaml' } }

const change = (stage: Stage, actor: Actor) => changeTarget(stage, actor, chooseTarget(stage, ['update', 'patch']))

/** Removes a limit of a key of the actor. */
function relaxKey(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover } = stage
  const own = prover.model
    .of(kinds.OwnedAccessKey)
    .filter(one => isInPool(one) && one.object.spec?.user === actor.principal?.username)
  const key = chance.any(own.filter(({ object: { spec = {} } }) => spec.scope || spec.disabled || spec.ttl))
  if (!key) return undefined
  const { scope, disabled, ttl } = key.object.spec ?? {}
  const edit = chance.pick<(object: Obj) => Obj>([
    ...(scope ? [(object: Obj) => without(object, 'scope')] : []),
    ...(disabled ? [(object: Obj) => withSpec(object, { disabled: false })] : []),
    ...(ttl ? [(object: Obj) => withSpec(object, { ttl: 864_000 }), (object: Obj) => without(object, 'ttl')] : []),
  ])
  const mutation = (object: Obj): Mutation => ({ next: edit(object), what: 'a limit', danger: 'lifetime' })
  return changeTarget(stage, actor, { ...key, verb: chance.pick(['update', 'patch']), mutation })
}

/** Makes an attacker the owner of an object that the actor may change. */
function takeOwnership(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover, attackers, enabled, holds = noBits() } = stage
  const verb = chance.pick(['update', 'patch'])
  const all = [kinds.SharedSecret, kinds.ProjectSecret, kinds.Team].flatMap(kind => prover.model.of(kind))
  const found = chance.any(
    all.filter(({ kind: { group, plural }, namespace, name }) => {
      const index = placeOf({ verb, group, resource: plural, namespace, name })
      return index >= 0 && hasBit(holds, index)
    }),
  )
  const owner = { user: chance.pick(attackers) }
  const danger = isScoped(actor) ? 'scoped-sharing' : 'ownership'
  const mutation = (object: Obj): Mutation => ({ next: withSpec(object, { owner }), what: 'the owner', danger })
  return found && enabled.has(danger) ? changeTarget(stage, actor, { ...found, verb, mutation }) : undefined
}

/** Mostly a disabled one. */
function changeUser(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover } = stage
  const all = prover.model.of(kinds.User).filter(isInPool)
  const disabled = all.filter(one => one.object.spec?.disabled)
  const user = chance.any(disabled.length && chance.is(0.7) ? disabled : all)
  const verb = chance.pick(['update', 'patch'])
  return user && mayTryUsers(stage, verb) ? changeTarget(stage, actor, { ...user, verb }) : undefined
}

/** Others than those who may write Users seldom try. */
function mayTryUsers({ chance, holds = noBits() }: Stage, verb: string): boolean {
  const isHeld = atoms.some((one, index) => one.resource === 'users' && one.verb === verb && hasBit(holds, index))
  return isHeld || chance.is(0.05)
}

/** Its labels, projects, gateway or disabled flag. */
function changeCluster(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover, enabled } = stage
  const cluster = chance.any(prover.model.of(kinds.Cluster).filter(isInPool))
  const { danger = 'clusters', what, make } = chance.weighted(clusters.map(one => [one.weight, one] as const))
  if (!cluster || !enabled.has(danger)) return undefined
  const mutation = (object: Obj): Mutation => ({ next: make(stage, cluster)(object), what, danger })
  return changeTarget(stage, actor, { ...cluster, verb: chance.pick(['update', 'patch']), mutation })
}

function changeTarget(stage: Stage, actor: Actor, { kind, namespace, ...target }: Target): Step | undefined {
  const { chance, prover, enabled } = stage
  const there = prover.model.of(kind).filter(one => one.namespace === namespace && isInPool(one))
  const found = target.name ? prover.model.get(kind, namespace, target.name) : chance.any(there)
  if (!found) return undefined
  const patch = chance.weighted<Method>([
    [5, 'merge'],
    [4, 'json'],
    [2, 'apply'],
    [kind.group === rbac ? 3 : 1, 'strategic'],
  ])
  const method = target.verb === 'update' ? 'update' : patch
  const visible = visibleOf(found.object)
  const { next, what, ...mutation } = target.mutation?.(visible) ?? mutate(stage, found, visible, isScoped(actor))
  const isLimited = kind === kinds.OwnedAccessKey && isBounded(actor) && enabled.has('lifetime')
  const danger = isLimited ? 'lifetime' : mutation.danger
  // A replacement needs the resourceVersion; a patch may have it.
  const isPinned = method !== 'update' && chance.is(0.2)
  const body = bodyOf(method, isPinned ? unpinned(visible) : visible, next, kind)
  const sub = kind.shared && chance.is(0.04) ? 'status' : ''
  const type = method === 'update' && chance.is(0.03) ? yaml : {}
  const at = { kind, namespace, name: found.name, sub }
  return stepOf(stage, actor, { ...at, ...type, method, body, what, ...tagged(actor, danger) })
}

function unpinned(object: Obj): Obj {
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

function create(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover, enabled } = stage
  const { kind, namespace } = chooseTarget(stage, ['create'])
  if (kind === kinds.OwnedAccessKey) return undefined
  const free = namesOf(kind).filter(name => !prover.model.get(kind, namespace, name))
  const name = chance.is(0.9) && free.length ? chance.pick(free) : chance.any(namesOf(kind))
  if (name === undefined) return undefined
  const ofRbac = kind === kinds.ClusterRoleBinding || kind === kinds.RoleBinding ? 'bindings' : undefined
  const danger = reborn(kind) ?? (isScoped(actor) && kind.group === rbac ? 'scoped-sharing' : ofRbac)
  if (danger && !enabled.has(danger)) return undefined
  const object = draft(stage, kind, namespace, name)
  const body = kind.shared && chance.is(0.6) ? withoutSharing(object) : object
  const method = chance.is(0.1) ? 'apply' : 'create'
  return stepOf(stage, actor, { kind, namespace, name, method, body, what: 'creation', ...tagged(actor, danger) })
}

function withoutSharing(object: Obj): Obj {
  const { owner: _, access: __, ...spec } = object.spec ?? {}
  return { ...object, spec }
}

/** The person of a deleted User can sign in again. */
function removeUser(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover } = stage
  const user = chance.any(prover.model.of(kinds.User).filter(one => isInPool(one) && one.object.spec?.disabled))
  const at = { kind: kinds.User, name: user?.name ?? '' }
  return user && stepOf(stage, actor, { ...at, method: 'delete', what: 'deletion', ...tagged(actor, 'users') })
}

function remove(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover, enabled } = stage
  const { kind, namespace, ...target } = chooseTarget(stage, chance.is(0.1) ? ['deletecollection'] : ['delete'])
  const danger = reborn(kind)
  if (danger && !enabled.has(danger)) return undefined
  const tag = tagged(actor, danger)
  if (target.verb === 'deletecollection')
    return stepOf(stage, actor, {
      kind,
      namespace,
      name: '',
      method: 'deletecollection',
      what: 'deletion of all',
      ...tag,
    })
  const there = prover.model.of(kind).filter(one => one.namespace === namespace && isInPool(one))
  const name = target.name || chance.any(there)?.name
  if (name === undefined) return undefined
  const query = chance.weighted([
    [6, []],
    [1, ['propagationPolicy=Foreground']],
    [1, ['propagationPolicy=Orphan']],
    [1, ['gracePeriodSeconds=30']],
  ] as const)
  return stepOf(stage, actor, { kind, namespace, name, method: 'delete', query, what: 'deletion', ...tag })
}
