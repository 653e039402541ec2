// Concurrent work of the administrator: revokes, deletes, recreates, disables and rotates.

import { namesOf, namespacesOf, reborn } from './actor.ts'
import { clusterSpec, courier, labelsOf } from './cluster-drafts.ts'
import { draft, keySpec } from './drafts.ts'
import { bodyOf, visibleOf } from './encode.ts'
import { rate, type Stage } from './generator-context.ts'
import type { Known } from './model.ts'
import { type KindInfo, kinds, type Obj } from './objects.ts'
import type { Step } from './step.ts'
import { administrator, chosenSecrets, names, userObject } from './universe.ts'

export function administer(stage: Stage): Step | undefined {
  const { coalition, credentials } = stage.prover
  // Attackers without a valid key could do nothing.
  if (![...coalition].some(one => credentials.endOf(one) !== undefined)) return giveBack(stage)
  return stage.chance.weighted<(stage: Stage) => Step | undefined>([
    [8, restore],
    [6, takeAway],
    [5, editTeam],
    [4, unshare],
    [4, edit],
    [4, rotateKey],
    [4, switchKey],
    [3, giveKey],
    [rate(stage, 'brought-keys', { often: 14, seldom: 1 }), bringKey],
    [2 + rate(stage, 'brought-keys', { often: 3, seldom: 0 }), removeKey],
    [rate(stage, 'users', { often: 4, seldom: 2 }) + rate(stage, 'machines', { often: 4, seldom: 0 }), switchUser],
    [rate(stage, 'clusters', { often: 20, seldom: 4 }), editCluster],
  ])(stage)
}

type Part = Partial<Step> & Pick<Step, 'kind' | 'name' | 'method' | 'what'>

const stepOf = ({ prover }: Stage, part: Part): Step => ({
  actor: 'admin',
  secret: prover.server.adminKey,
  namespace: '',
  sub: '',
  dryRun: false,
  ...part,
})

const known: readonly KindInfo[] = [
  kinds.Team,
  kinds.SharedSecret,
  kinds.ProjectSecret,
  kinds.ClusterRole,
  kinds.ClusterRoleBinding,
  kinds.Role,
  kinds.RoleBinding,
  kinds.User,
  kinds.Cluster,
]

/** Creates an object under an unused name of the pools. */
function restore(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const free = known
    .flatMap(kind => namespacesOf(kind).flatMap(namespace => namesOf(kind).map(name => ({ kind, namespace, name }))))
    .filter(({ kind, namespace, name }) => isTouched(stage, kind) && !prover.model.get(kind, namespace, name))
  const at = chance.any(free.filter(({ kind }) => reborn(kind) !== undefined)) ?? chance.any(free)
  if (!at) return undefined
  const body = draft(stage, at.kind, at.namespace, at.name)
  return stepOf(stage, { ...at, method: 'create', body, what: 'creation' })
}

/** Reused names are an attack of their own. */
function isTouched({ enabled }: Stage, kind: KindInfo): boolean {
  const danger = reborn(kind)
  return danger === undefined || enabled.has(danger)
}

const inPool = (all: readonly Known[]) => all.filter(({ kind, name }) => namesOf(kind).includes(name))

function takeAway(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const kind = chance.pick(known.filter(one => isTouched(stage, one)))
  // Attackers without permissions have nothing to start with, so these are revoked less often.
  const isSpared = ({ name }: Known) => /^(hat|agg|b2)/.test(name) && chance.is(0.8)
  const found = chance.any(inPool(prover.model.of(kind)).filter(one => !isSpared(one)))
  return found && stepOf(stage, { ...found, method: 'delete', what: 'deletion' })
}

function editTeam(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const team = chance.any(inPool(prover.model.of(kinds.Team)))
  if (!team) return undefined
  const body = { spec: { users: chance.some(names.users, 2), groups: chance.some(names.groups, 1) } }
  return stepOf(stage, { ...team, method: 'merge', body, what: 'members' })
}

/** Removes the access entries of an object, and sometimes makes the administrator its owner. */
function unshare(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const kind = chance.pick([kinds.SharedSecret, kinds.SharedSecret, kinds.ProjectSecret, kinds.Team])
  const found = chance.any(inPool(prover.model.of(kind)))
  if (!found) return undefined
  const body = { spec: { access: [], ...(chance.is(0.5) ? { owner: { user: administrator, team: null } } : {}) } }
  return stepOf(stage, { ...found, method: 'merge', body, what: 'access' })
}

/** Rewrites an object unchanged or with a new note, which may update its team references. */
function edit(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const found = chance.any(inPool(prover.model.of(chance.pick(known))))
  if (!found) return undefined
  const visible = visibleOf(found.object)
  const next: Obj = { ...visible, metadata: { ...visible.metadata, annotations: { note: String(chance.below(100)) } } }
  const method = chance.pick(['update', 'merge', 'apply'] as const)
  // A replacement without data would remove the data.
  if (method === 'update' && found.kind.shared && found.kind !== kinds.Team) return undefined
  return stepOf(stage, { ...found, method, body: bodyOf(method, visible, next, found.kind), what: 'a note' })
}

function rotateKey(stage: Stage): Step | undefined {
  const { chance, prover, enabled } = stage
  const key = chance.any(inPool(prover.model.of(kinds.OwnedAccessKey)))
  if (!key || !enabled.has('token-overlap')) return undefined
  const body = { spec: { overlapSeconds: chance.pick([0, 60, 600, 3600]) } }
  return stepOf(stage, { ...key, sub: 'rotate', method: 'create', body, what: 'rotation' })
}

function switchKey(stage: Stage): Step | undefined {
  const { chance, prover, enabled } = stage
  const key = chance.any(inPool(prover.model.of(kinds.OwnedAccessKey)))
  const spec =
    enabled.has('lifetime') && chance.is(0.3) ? { ttl: chance.pick([60, 3600, 864_000]) } : { disabled: chance.is(0.4) }
  return key && stepOf(stage, { ...key, method: 'merge', body: { spec }, what: 'a limit' })
}

/** A key for a user; run.ts gives it to the attackers if the user is one. */
function giveKey(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const name = names.keys.findLast(one => !prover.model.get(kinds.OwnedAccessKey, '', one))
  if (name === undefined) return undefined
  const { team, ...spec } = keySpec(stage)
  const whose = team ? { team } : { user: chance.pick(names.users) }
  const body = { metadata: { name }, spec: { ...spec, ...whose } }
  return stepOf(stage, { kind: kinds.OwnedAccessKey, name, method: 'create', body, what: 'creation' })
}

/** Chooses a secret, which another key may have or may have had, for a new or an existing key. */
function bringKey(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const dryRun = chance.is(0.3)
  const chosen = { key: chance.pick(chosenSecrets) }
  const all = inPool(prover.model.of(kinds.OwnedAccessKey))
  // Their secret from before a rotation still works.
  const rotated = all.filter(one => one.object.status?.['previous'] !== undefined)
  const key = chance.any(rotated.length && chance.is(0.5) ? rotated : all)
  const made = chance.is(0.5) ? giveKey(stage) : undefined
  if (made) {
    const body = made.body as Obj
    return { ...made, dryRun, body: { ...body, spec: { ...body.spec, ...chosen } } }
  }
  return key && stepOf(stage, { ...key, dryRun, method: 'merge', body: { spec: chosen }, what: 'a secret' })
}

function switchUser(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const user = chance.any(inPool(prover.model.of(kinds.User)))
  return (
    user &&
    stepOf(stage, { ...user, method: 'merge', body: { spec: { disabled: chance.is(0.4) } }, what: 'the disabled flag' })
  )
}

/** Gives or takes the permission to deliver. */
function switchCourier(stage: Stage): Step {
  const name = 'courier'
  const at = { kind: kinds.ClusterRoleBinding, name }
  if (stage.prover.model.get(at.kind, '', name)) return stepOf(stage, { ...at, method: 'delete', what: 'deletion' })
  const body = { metadata: { name }, ...courier(stage.chance.pick(stage.attackers)) }
  return stepOf(stage, { ...at, method: 'create', body, what: 'creation' })
}

/** Changes a cluster, or deletes it, so that its name means another one later. */
function editCluster(stage: Stage): Step | undefined {
  const { chance, prover } = stage
  const cluster = chance.any(inPool(prover.model.of(kinds.Cluster)))
  if (!cluster) return undefined
  if (chance.is(0.3)) return stepOf(stage, { ...cluster, method: 'delete', what: 'deletion' })
  if (chance.is(0.25)) return switchCourier(stage)
  const body = { metadata: { labels: labelsOf(stage) }, spec: clusterSpec(stage) }
  return stepOf(stage, { ...cluster, method: 'merge', body, what: 'a cluster' })
}

/** The User of an attacker, without which no key of theirs works. */
function welcome(stage: Stage): Step | undefined {
  const { prover, attackers } = stage
  const { signIns, server } = prover
  for (const username of attackers) {
    const user = signIns.userOf(username)
    if (user && signIns.isDisabled(username) && !user.object.metadata.deletionTimestamp)
      return stepOf(stage, { ...user, method: 'merge', body: { spec: { disabled: false } }, what: 'the disabled flag' })
    const name = userObject(username)
    if (user || !server.requiresUsers || prover.model.get(kinds.User, '', name)) continue
    return stepOf(stage, {
      kind: kinds.User,
      name,
      method: 'create',
      body: { metadata: { name }, spec: { username } },
      what: 'creation',
    })
  }
  return undefined
}

function giveBack(stage: Stage): Step | undefined {
  const { chance, prover, attackers, enabled } = stage
  const welcoming = welcome(stage)
  if (welcoming) return welcoming
  const name = names.keys.find(one => !prover.model.get(kinds.OwnedAccessKey, '', one))
  if (name === undefined) return removeKey(stage)
  const life = enabled.has('lifetime') && chance.is(0.3) ? { ttl: 3600 } : {}
  const body = { metadata: { name }, spec: { user: chance.pick(attackers), ...life } }
  return stepOf(stage, { kind: kinds.OwnedAccessKey, name, method: 'create', body, what: 'creation' })
}

function removeKey(stage: Stage): Step | undefined {
  const found = stage.chance.any(inPool(stage.prover.model.of(kinds.OwnedAccessKey)))
  return found && stepOf(stage, { ...found, method: 'delete', what: 'deletion' })
}
