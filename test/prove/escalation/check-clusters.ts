// Connected clusters: they get only what the model says, and only after writes by callers who may send it (D60, D68, D69).

import { maySee, readOf } from './check-data.ts'
import type { Principal } from './credentials.ts'
import { type Flow, flowsOf, isLeaving, teamOf } from './flows.ts'
import type { Known } from './model.ts'
import { collectionOf, kinds, ours, teamGroup } from './objects.ts'
import { agentOf } from './permissions.ts'
import type { Prover } from './prover.ts'
import type { Before, Outcome } from './step.ts'
import { type Atom, agentTokens, hasBit, placeOf } from './universe.ts'
import { Violation } from './violation.ts'

const onCluster = (part: Partial<Atom>): Partial<Atom> => ({ group: ours, resource: 'clusters', ...part })
const bindOf = ({ cluster, role }: Flow) => onCluster({ verb: 'bind', sub: 'clusterroles', name: `${cluster}:${role}` })
const deliverTo = (name: string) => onCluster({ verb: 'deliver', name })

/** Whether a caller had a permission before the request. Everything that the steps write is in the universe. */
const had = ({ bits }: Before, part: Partial<Atom>): boolean => {
  const index = placeOf(part)
  if (index < 0) throw new Error(`no such atom: ${JSON.stringify(part)}`)
  return hasBit(bits, index)
}

/** Whatever begins to flow because of a request needs permissions of its caller. Nothing begins to flow by itself. */
export function checkFlows(prover: Prover, outcome: Outcome | undefined): void {
  const before = prover.flows
  prover.flows = flowsOf(prover.model)
  if (outcome?.accepted) {
    checkGateways(outcome)
    checkAgentKeys(outcome)
  }
  for (const [key, flow] of prover.flows) {
    if (before.has(key)) continue
    const missing = outcome?.accepted ? missingFor(prover, outcome, flow) : 'a request'
    if (missing !== undefined)
      throw new Violation(
        'delivery',
        `${printFlow(flow)} by ${outcome?.step.what ?? 'the server'} of ${outcome?.step.kind.kind} "${outcome?.step.name}" without ${missing}`,
      )
  }
}

/** The author of a key of an agent can read and report what the agent can. */
function checkAgentKeys({ step, before: known, changes }: Outcome): void {
  for (const { type, after, cause } of changes) {
    const { subject = '' } = after?.object.spec ?? {}
    if (type !== 'created' || cause === 'server' || after?.kind !== kinds.OwnedAccessKey) continue
    const [, name] = /^platform:cluster:([^:]+):/.exec(subject) ?? []
    if (name === undefined || known.administers || agentVerbs.every(one => had(known, onCluster({ ...one, name }))))
      continue
    throw new Violation('delivery', `${step.what} made key "${after.name}" of the agent of cluster "${name}"`)
  }
}

const agentVerbs = [
  { verb: 'get', sub: 'desired' },
  { verb: 'watch', sub: 'desired' },
  { verb: 'update', sub: 'status' },
  { verb: 'patch', sub: 'status' },
]

/** The permission that the caller lacks; undefined: none. */
function missingFor(prover: Prover, outcome: Outcome, flow: Flow): string | undefined {
  const { step, before } = outcome
  if (flow.type === 'role') {
    if (step.kind !== kinds.Team && step.kind !== kinds.Cluster) return 'a request that concerns it'
    return had(before, bindOf(flow)) ? undefined : `bind on ${flow.cluster}:${flow.role}`
  }
  const { from, cluster } = flow
  const { owner } = from.object.spec ?? {}
  if (!maySee(prover, before, readOf('projectsecrets', from.namespace, from.name))) return 'get on the secret'
  if (step.kind === kinds.Cluster) return undefined
  if (step.kind !== kinds.ProjectSecret) return 'a request that concerns it'
  if (!had(before, deliverTo(cluster))) return `deliver on ${cluster}`
  if (!owner?.user && !owner?.team) return undefined
  if (!actsFor(before, flow)) return 'permission to act for the owner'
  return mayOwnerDeliver(prover, flow) ? undefined : `deliver on ${cluster} of the owner`
}

/** Callers deliver as themselves, as a team that they may update, or as a user whom they may impersonate. */
function actsFor(before: Before, { from }: Flow): boolean {
  const { owner } = from.object.spec ?? {}
  const team = teamOf(owner)
  const username = before.principal?.username
  if (team !== undefined) {
    const update = placeOf({ verb: 'update', group: ours, resource: 'teams', name: team })
    return username === `${teamGroup}${team}` || (update >= 0 && hasBit(before.bits, update))
  }
  const impersonate = placeOf({ verb: 'impersonate', resource: 'users', name: owner?.user ?? '' })
  return username === owner?.user || (impersonate >= 0 && hasBit(before.bits, impersonate))
}

/** A gateway acts as the users of the cluster. */
function checkGateways({ step, before: known, changes }: Outcome): void {
  for (const { before, after, cause } of changes) {
    if (after?.kind !== kinds.Cluster || cause === 'server') continue
    const [was, is] = [gatewayOf(before), gatewayOf(after)]
    if (is === undefined || is === was || had(known, onCluster({ verb: 'impersonate', name: after.name }))) continue
    throw new Violation('delivery', `${step.what} set the gateway of cluster "${after.name}" without impersonate`)
  }
}

function gatewayOf(cluster: Known | undefined): string | undefined {
  const { gateway, disabled } = cluster?.object.spec ?? {}
  return gateway?.url && !disabled ? JSON.stringify(gateway) : undefined
}

/** Until when an owner may still count, in milliseconds, by owner and cluster. */
export type Graces = Map<string, number>

/** The server looks this often whether permissions ended by themselves, as with a key that expired. */
const lookEvery = 61_000

/** The current identity of the owner: a team, or a user with the groups of any of the user's keys (D17). */
function ownersOf({ model, credentials }: Prover, secret: Known): Principal[] {
  const { owner } = secret.object.spec ?? {}
  const team = teamOf(owner)
  if (team !== undefined) {
    const name = `${teamGroup}${team}`
    return model.means(secret, team) ? [credentials.principalOf(name, ['system:authenticated', name])] : []
  }
  if (!owner?.user) return []
  const own = credentials.all().flatMap(one => {
    const found = credentials.of(one)?.principal
    return found && found.username === owner.user ? [found] : []
  })
  // Groups of several keys count together.
  return [credentials.personOf(owner.user, [...new Set(own.flatMap(one => [...one.groups]))])]
}

const mayOwnerDeliver = (prover: Prover, { from, cluster }: Flow): boolean => {
  const index = placeOf(deliverTo(cluster))
  return ownersOf(prover, from).some(one => hasBit(prover.rights.bitsOf(one), index))
}

type Item = {
  readonly name: string
  readonly role?: { readonly team: string; readonly uid: string; readonly clusterRole: string }
  readonly secret?: {
    readonly namespace: string
    readonly name: string
    readonly type: string
    readonly keys?: readonly string[]
    readonly source: { readonly uid: string }
  }
}

/** Turns of the event loop in which the server must have processed a change. */
const patience = 20

/** Everything that the server sends to a cluster must flow there according to the model, with the permission of its owner. */
export async function checkDesired(prover: Prover, isClock: boolean): Promise<void> {
  const clusters = prover.model.of(kinds.Cluster).filter(one => !isLeaving(one))
  if (clusters.length === 0) return
  giveGraces(prover, isClock)
  for (const cluster of clusters) {
    let wrong = await wrongItem(prover, cluster)
    for (let tries = 0; wrong !== undefined && tries < patience; tries++) {
      await prover.server.settle()
      wrong = await wrongItem(prover, cluster)
    }
    if (wrong !== undefined) throw new Violation('delivery', `cluster "${cluster.name}" gets ${wrong}`)
  }
  await checkAgentTokens(prover, clusters)
}

/** A token of the agent's service account reads exactly what its own cluster gets, by uid. */
async function checkAgentTokens(prover: Prover, clusters: readonly Known[]): Promise<void> {
  const { signIns, credentials, server } = prover
  for (const [token, { subject, expires }] of signIns.machines) {
    if (subject !== agentTokens || expires < server.now()) continue
    const agent = credentials.of(token)?.principal.username
    for (const cluster of clusters) {
      let wrong = await wrongReading(prover, cluster, { token, isOwn: agent === agentOf(cluster) })
      for (let tries = 0; wrong !== undefined && tries < patience; tries++) {
        await server.settle()
        wrong = await wrongReading(prover, cluster, { token, isOwn: agent === agentOf(cluster) })
      }
      if (wrong === undefined) continue
      const whose = `a token of "${agent ?? 'an agent whose cluster is gone'}"`
      throw new Violation('delivery', `${whose} reads ${wrong} of cluster "${cluster.name}" (${cluster.uid})`)
    }
  }
}

type Reading = { readonly token: string; readonly isOwn: boolean }

async function wrongReading(prover: Prover, cluster: Known, { token, isOwn }: Reading): Promise<string | undefined> {
  const seen = await desiredOf(prover, cluster, token)
  if (!isOwn) return seen.code < 300 ? 'the items' : undefined
  const all = await desiredOf(prover, cluster, prover.server.adminKey)
  return all.code === 200 && all.text !== seen.text ? 'other items than the administrator' : undefined
}

function desiredOf({ server }: Prover, { name }: Known, secret: string) {
  const url = `${collectionOf(kinds.Cluster, '')}/${name}/desired`
  return server.ask({ method: 'GET', url, headers: { authorization: `Bearer ${secret}` } })
}

const graceOf = ({ from, cluster }: Flow) => JSON.stringify([from.uid, from.object.spec?.owner, cluster])

function giveGraces(prover: Prover, isClock: boolean): void {
  const { graces, flows } = prover
  const now = prover.server.now()
  for (const flow of flows.values()) {
    if (flow.type !== 'secret') continue
    const key = graceOf(flow)
    if (mayOwnerDeliver(prover, flow)) graces.set(key, Number.POSITIVE_INFINITY)
    else if (graces.get(key) === Number.POSITIVE_INFINITY) graces.set(key, isClock ? now + lookEvery : 0)
  }
}

/** The first item that must not be there, for the report. */
async function wrongItem(prover: Prover, cluster: Known): Promise<string | undefined> {
  const { server, flows, graces } = prover
  const { code, text } = await desiredOf(prover, cluster, server.adminKey)
  // The cluster is disabled, or the administrator may not read it.
  if (code !== 200) return undefined
  const own = [...flows.values()].filter(({ uid }) => uid === cluster.uid)
  for (const { name, role, secret } of (JSON.parse(text) as { items: readonly Item[] }).items) {
    const found = own.filter(flow => (role ? isRole(flow, role) : secret !== undefined && isSecret(flow, secret)))
    if (found.length === 0) return `"${name}", which nothing sends there`
    if (secret && !found.some(flow => (graces.get(graceOf(flow)) ?? 0) > server.now()))
      return `"${name}", though the owner of the secret may not deliver there`
  }
  return undefined
}

const isRole = ({ type, from, role }: Flow, item: NonNullable<Item['role']>) =>
  type === 'role' && from.uid === item.uid && from.name === item.team && role === item.clusterRole

const isSecret = (flow: Flow, { source, namespace, name, type, keys }: NonNullable<Item['secret']>) =>
  flow.type === 'secret' &&
  flow.from.uid === source.uid &&
  flow.namespace === namespace &&
  flow.name === name &&
  flow.secretType === type &&
  (flow.keys === undefined || keys?.every(key => flow.keys?.includes(key)) === true)

const printFlow = ({ type, from, cluster, role, namespace, name }: Flow): string =>
  type === 'role'
    ? `role "${role}" of team "${from.name}" began to be bound in cluster "${cluster}"`
    : `ProjectSecret "${from.name}" began to flow to "${namespace}/${name}" in cluster "${cluster}"`
