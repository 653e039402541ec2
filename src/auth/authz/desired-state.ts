// The desired content of each connected cluster: roles of teams and delivered secrets (D69). Every replica keeps it, for the agents that read
// from it. It holds no data of secrets.

import type { Caller } from '../../api/caller.ts'
import type { Ref } from '../../api/object.ts'
import type { Affects, Question } from '../../api/permissions.ts'
import type { Resources } from '../../api/resources.ts'
import { forEachInSlices } from '../../api/time-slices.ts'
import { clusterUidsOf } from '../../kinds/cluster-selection.ts'
import { type DeliveryCluster, deliveriesOf, deliverTo, targetsIn } from '../../kinds/delivery.ts'
import { ProjectSecret } from '../../kinds/project-secret.ts'
import { mentions } from '../../reconcile/document-words.ts'
import { startInformer } from '../../reconcile/informer.ts'
import { type ClusterIndex, type ClusterRecord, openClusterIndex } from '../authn/cluster-index.ts'
import type { TeamRecord } from '../authn/team-index.ts'
import { openClusterItems } from './cluster-items.ts'
import { type ClusterDelivery, type DataOf, deliveryIn, incompleteIn, missingClusters } from './delivery-report.ts'
import { type DeliveredSecret, type Item, type Owner, readSecret, rolesIn } from './desired-items.ts'

export type DesiredStateOptions = {
  readonly resources: Resources
  readonly teams: { all(): Iterable<TeamRecord>; get(name: string): TeamRecord | undefined }
  readonly callerOf: (owner: Owner) => Caller | undefined
  readonly authorizer: { decide(caller: Caller, question: Question): { readonly allowed: boolean } }
  /** Calls back whenever somebody's permissions may have changed, and returns how to stop that. */
  readonly permissionsChanged: (callback: (affects: Affects) => void) => () => void
  readonly changed: (affects: Affects) => void
  /** Resolves when permissions are known. */
  readonly indexed: Promise<unknown>
  readonly failed: (what: string, error: unknown) => void
}

export interface DesiredState {
  readonly ready: Promise<void>
  readonly clusters: ClusterIndex
  /** The newest version of a delivered secret, or of a team with roles, that this state contains. */
  readonly version: string
  /** `cluster`: its uid. */
  itemsOf(cluster: string): ReadonlyMap<string, Item>
  secrets(): Iterable<DeliveredSecret>
  /** `slot`: namespace/name. `changedAt`: the version of the last change of its spec, or a later one. */
  secretAt(slot: string): (DeliveredSecret & { readonly changedAt: number }) | undefined
  /** Calls back with the slot of a secret whose deliveries may have changed. */
  followSecrets(callback: (slot: string) => void): () => void
  /** Everything that such a cluster would get, whether owners may deliver or not. */
  flowsTo(cluster: DeliveryCluster): {
    readonly secrets: readonly { readonly key: string; readonly ref: Ref }[]
    readonly roles: readonly { readonly key: string; readonly role: string }[]
  }
  /** Why a secret, or a part of it, is not sent to the clusters that it selects, and to which it is. */
  deliveryOf(secret: DeliveredSecret, dataOf: DataOf): readonly ClusterDelivery[]
  /** `cluster`: its uid. Calls back with items that changed; undefined: the cluster or the version did. */
  follow(cluster: string, callback: (id: string | undefined) => void): () => void
  /** To be called after every change of a team. */
  teamChanged(team: string): void
  /** The version of the last change of a team's roles, or a later one. */
  teamChangedAt(team: string): number
  stop(): void
}

/** Permissions can end without a word, as with a key that expires and whose groups counted. */
const checkEvery = 15_000
const slotOf = ({ namespace, name }: Ref) => `${namespace}/${name}`
const group = 'management.platform.sh'

export function openDesiredState(options: DesiredStateOptions): DesiredState {
  const { resources, teams, callerOf, authorizer, permissionsChanged, changed, indexed, failed } = options
  const followers = new Map<string, Set<(id: string | undefined) => void>>()
  let version = 0
  const changedAt = new Map<string, number>()
  const teamRoles = new Map<string, { readonly roles: string; readonly changedAt: number }>()
  const secretFollowers = new Set<(slot: string) => void>()

  const notify = (cluster: string, id: string | undefined) => {
    for (const callback of followers.get(cluster) ?? []) callback(id)
  }
  const items = openClusterItems(notify)
  const mayDeliver = ({ owner, ref }: DeliveredSecret, cluster: string) => {
    const caller = owner.user || owner.team ? callerOf(owner) : undefined
    if (!caller) return false
    const onSecret = { verb: 'get', target: { group, resource: 'projectsecrets', ...ref } }
    return authorizer.decide(caller, deliverTo(cluster)).allowed && authorizer.decide(caller, onSecret).allowed
  }
  const isOpen = ({ isDisabled, isTerminating }: ClusterRecord) => !isDisabled && !isTerminating
  const place = (slot: string, secret: DeliveredSecret | undefined, cluster: ClusterRecord) => {
    const targets = secret && isOpen(cluster) ? targetsIn(secret.object, cluster) : []
    const wanted = secret && targets.length && mayDeliver(secret, cluster.name) ? targets : []
    return items.place(
      cluster.uid,
      slot,
      wanted.map(target => ({
        id: `secret/${target.namespace}/${target.name}`,
        secret: secret as DeliveredSecret,
        target,
      })),
    )
  }
  const placeEverywhere = (slot: string, secret: DeliveredSecret | undefined) => {
    let isMoved = false
    for (const cluster of clusters.all()) if (place(slot, secret, cluster)) isMoved = true
    return isMoved
  }
  /** The roles of one team in one cluster. */
  const placeRoles = (name: string, team: TeamRecord | undefined, cluster: ClusterRecord) => {
    const before = items.of(cluster.uid)
    const known = (teamItems.get(`${cluster.uid}/${name}`) ?? []).filter(id => before.has(id))
    const roles = team && isOpen(cluster) ? rolesIn(team, cluster) : []
    const now = roles.map(clusterRole => ({
      id: `role/${name}/${clusterRole}`,
      role: { team: name, uid: team?.uid ?? '', clusterRole },
    }))
    const ids = now.map(({ id }) => id)
    for (const id of known) if (!ids.includes(id)) items.setRole(cluster.uid, id, undefined)
    for (const item of now) items.setRole(cluster.uid, item.id, item)
    if (ids.length) teamItems.set(`${cluster.uid}/${name}`, ids)
    else teamItems.delete(`${cluster.uid}/${name}`)
  }
  const teamItems = new Map<string, readonly string[]>()

  const secrets = startInformer({
    resources,
    kind: ProjectSecret,
    counts: mentions('deliver'),
    keep: readSecret,
    changed: (ref, now, before) => {
      const slot = slotOf(ref)
      // A write of the status changes no delivery.
      if (now && before && now.stamp === before.stamp) return
      if (!now) changedAt.delete(slot)
      else {
        version = Math.max(version, Number(now.version))
        changedAt.set(slot, Number(now.version))
      }
      placeEverywhere(slot, now && deliveriesOf(now.object).length ? now : undefined)
      for (const callback of secretFollowers) callback(slot)
    },
    failed: error => failed('watching project secrets', error),
  })
  const clusters = openClusterIndex({
    resources,
    changed,
    followed: (now, before) => {
      // At once: a cluster that has the name now must not see items of the earlier one.
      if (before && before.uid !== now?.uid) items.drop(before.uid)
      const name = (now ?? before)?.name ?? ''
      notify(before?.uid ?? '', undefined)
      if (!now) {
        for (const { ref } of secrets.values()) for (const callback of secretFollowers) callback(slotOf(ref))
        return
      }
      void (async () => {
        await forEachInSlices(teamRoles.keys(), team => placeRoles(team, teams.get(team), now))
        await forEachInSlices(secrets.values(), secret => {
          if (clusters.get(name)?.uid === now.uid) place(slotOf(secret.ref), secret, clusters.get(name) ?? now)
          for (const callback of secretFollowers) callback(slotOf(secret.ref))
        })
      })()
    },
    failed: error => failed('watching clusters', error),
  })
  /** An owner with many secrets is evaluated once. */
  const checkAll = async (affects: Affects) => {
    const owners = new Map<string, Caller | undefined>()
    await forEachInSlices(secrets.values(), secret => {
      const id = JSON.stringify(secret.owner)
      if (!owners.has(id)) owners.set(id, callerOf(secret.owner))
      const caller = owners.get(id)
      if (caller && !affects(caller)) return
      const slot = slotOf(secret.ref)
      if (placeEverywhere(slot, secret)) for (const callback of secretFollowers) callback(slot)
    })
  }
  /** Changes that arrive during a check are checked together after it. */
  let checking: Promise<void> | undefined
  let next: Affects | undefined
  const check = (affects: Affects = () => true): Promise<void> => {
    const before = next
    next = before ? caller => before(caller) || affects(caller) : affects
    checking ??= (async () => {
      while (next) {
        const wanted = next
        next = undefined
        await checkAll(wanted)
      }
      checking = undefined
    })()
    return checking
  }
  const unfollow = permissionsChanged(affects => void check(affects))
  const timer = setInterval(() => void check(), checkEvery).unref()

  return {
    // An incomplete state would make agents delete what is missing.
    ready: Promise.all([secrets.ready, clusters.ready, indexed]).then(() => check()),
    clusters,
    get version() {
      return String(version)
    },
    itemsOf: items.of,
    secrets: () => secrets.values(),
    secretAt: slot => {
      const [namespace = '', name = ''] = slot.split('/')
      const secret = secrets.get({ namespace, name })
      const at = changedAt.get(slot)
      return secret && at !== undefined && deliveriesOf(secret.object).length ? { ...secret, changedAt: at } : undefined
    },
    followSecrets(callback) {
      secretFollowers.add(callback)
      return () => secretFollowers.delete(callback)
    },
    flowsTo: cluster => ({
      secrets: [...secrets.values()].flatMap(({ object, ref, uid }) =>
        targetsIn(object, cluster).map(({ entry, namespace, name }) => ({
          key: `${uid} ${entry} ${namespace}/${name}`,
          ref,
        })),
      ),
      roles: [...teams.all()].flatMap(team =>
        rolesIn(team, cluster).map(role => ({ key: `${team.uid} ${role}`, role })),
      ),
    }),
    deliveryOf: (secret, dataOf) => [
      ...[...clusters.all()].flatMap(cluster => {
        const itemAt = (id: string) => items.of(cluster.uid).get(id)
        const found = deliveryIn(secret, cluster, { mayDeliver, itemAt })
        return found ? [found, ...incompleteIn(secret, cluster, { itemAt, dataOf })] : []
      }),
      ...missingClusters(
        deliveriesOf(secret.object).flatMap(one => one.clusters?.names ?? []),
        clusterUidsOf(secret.object),
        clusters.get,
      ),
    ],
    follow(cluster, callback) {
      const own = followers.get(cluster) ?? new Set()
      followers.set(cluster, own.add(callback))
      return () => {
        own.delete(callback)
        if (own.size === 0) followers.delete(cluster)
      }
    },
    teamChanged: name => {
      const team = teams.get(name)
      const isRemote = team !== undefined && team.remoteRoles.length > 0
      const roles = isRemote ? JSON.stringify([team.uid, team.remoteRoles, team.clusterUids]) : ''
      if ((teamRoles.get(name)?.roles ?? '') === roles) return
      if (isRemote) {
        teamRoles.set(name, { roles, changedAt: team.version })
        version = Math.max(version, team.version)
      } else teamRoles.delete(name)
      for (const cluster of clusters.all()) {
        placeRoles(name, isRemote ? team : undefined, cluster)
        notify(cluster.uid, undefined)
      }
    },
    teamChangedAt: name => teamRoles.get(name)?.changedAt ?? 0,
    stop() {
      unfollow()
      clearInterval(timer)
      secrets.stop()
      clusters.stop()
    },
  }
}
