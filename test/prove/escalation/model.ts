// The model's own record of the world: objects, the team that each name refers to, and the allowed sources of copied data (D61).
// It reads the store's events. Nothing here uses the server's authorization code.

import { openClusterPins } from './cluster-pins.ts'
import {
  byPlural,
  clusterPins,
  type KindInfo,
  kinds,
  type Obj,
  pullPins,
  pullSlot,
  slotOf,
  teamPins,
  teamsNamedBy,
} from './objects.ts'

export type Known = {
  readonly slot: string
  readonly kind: KindInfo
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly object: Obj
  /** Created by the server itself, such as a role that mirrors access entries. */
  readonly byServer: boolean
}

/** A change of the store. `object` is the last state if the object was deleted. */
export type StoreChange = {
  readonly type: 'created' | 'updated' | 'deleted'
  readonly plural: string
  readonly namespace: string
  readonly name: string
  readonly object: Obj
}

/** The cause of a change: the server, or a request. A rotation or a chosen secret may change the team that a key refers to. */
export type Cause = 'server' | 'request' | 'rotation'

export type Model = {
  readonly objects: ReadonlyMap<string, Known>
  /** Existing objects, by uid. */
  readonly uids: ReadonlyMap<string, Known>
  /** The last state of deleted objects, by uid. */
  readonly gone: ReadonlyMap<string, Known>
  /** Grows whenever permissions may have changed. */
  readonly version: number
  get(kind: KindInfo, namespace: string, name: string): Known | undefined
  of(kind: KindInfo): readonly Known[]
  /** Whether an object refers to the current team of this name. */
  means(object: Known, team: string): boolean
  pinOf(object: Known, team: string): string
  /** Whether members of a team may get a secret as an image pull secret. */
  pulls(team: string, secret: Known): boolean
  /** Whether the name of a cluster in an object means this cluster. */
  names(object: Known, cluster: Known): boolean
  /** Uids of the SharedSecrets that the data of a ProjectSecret may come from. */
  sourcesOf(secret: string): ReadonlySet<string>
  apply(change: StoreChange, cause: Cause): { readonly before: Known | undefined; readonly after: Known | undefined }
}

const open = ''

export function openModel(): Model {
  const objects = new Map<string, Known>()
  const uids = new Map<string, Known>()
  const gone = new Map<string, Known>()
  const byKind = new Map<string, readonly Known[]>()
  /** By uid of the object, then by name of the team. `open`: the next team of that name. */
  const pins = new Map<string, Map<string, string>>()
  /** By uid of the team, then by location of the secret. `open`: no secret, until somebody writes the team. */
  const pulled = new Map<string, Map<string, string>>()
  const sources = new Map<string, Set<string>>()
  /** ProjectSecrets whose source was missing when they started to follow it, by the source's slot. */
  const waiting = new Map<string, Set<string>>()
  const clusters = openClusterPins(name => objects.get(slotOf(kinds.Cluster, '', name)))
  let version = 0

  /** A team that is being deleted has no members, and new references do not refer to it. */
  const teamUid = (name: string) => {
    const team = objects.get(slotOf(kinds.Team, '', name))
    return team?.object.metadata.deletionTimestamp === undefined ? team?.uid : undefined
  }

  /**
   * A newly written name refers to the existing team, or to the first one created later. Later writes may move the pin to the
   * current team.
   */
  function pin(next: Known, cause: Cause): void {
    const named = teamsNamedBy(next.object)
    if (named.length === 0) return void pins.delete(next.uid)
    const own = pins.get(next.uid) ?? new Map<string, string>()
    pins.set(next.uid, own)
    for (const name of own.keys()) if (!named.includes(name)) own.delete(name)
    const stored = storedPins(next.object, teamPins)
    const mayMove = cause === 'rotation' || (cause === 'request' && next.kind !== kinds.OwnedAccessKey)
    for (const name of named) {
      const current = teamUid(name)
      if (!own.has(name)) own.set(name, current ?? open)
      else if (mayMove && current !== undefined && stored[name] === current) own.set(name, current)
    }
  }

  /** A newly written entry means the secret that exists. Later the stored pin may move to the current one. */
  function pull(next: Known, cause: Cause): void {
    const slots = (next.object.spec?.imagePullSecrets ?? []).map(pullSlot)
    const own = pulled.get(next.uid) ?? new Map<string, string>()
    pulled.set(next.uid, own)
    for (const slot of own.keys()) if (!slots.includes(slot)) own.delete(slot)
    const stored = storedPins(next.object, pullPins)
    for (const slot of slots) {
      const current = objects.get(slot)?.uid
      if (!own.has(slot)) own.set(slot, current ?? open)
      else if (cause === 'request' && current !== undefined && stored[slot] === current) own.set(slot, current)
    }
  }

  function follow(next: Known, before: Known | undefined, cause: Cause): void {
    const at = sourceSlot(next.object)
    // Copied data may stay after the reference is removed.
    if (at === undefined) return
    const allowed = sources.get(next.uid) ?? new Set<string>()
    sources.set(next.uid, allowed)
    const current = objects.get(at)?.uid
    if (before === undefined || sourceSlot(before.object) !== at) {
      if (current) allowed.add(current)
      else waiting.set(at, (waiting.get(at) ?? new Set()).add(next.uid))
    } else if (cause === 'request' && current !== undefined) {
      const pinned = next.object.spec?.sharedSecretRef?.uid
      if (pinned === current && pinned !== before.object.spec?.sharedSecretRef?.uid) allowed.add(current)
    }
  }

  function put(next: Known, before: Known | undefined, cause: Cause): void {
    objects.set(next.slot, next)
    uids.set(next.uid, next)
    byKind.delete(next.kind.plural)
    pin(next, cause)
    clusters.pin(next, { isRequest: cause === 'request', stored: storedPins(next.object, clusterPins) })
    if (next.kind === kinds.Team) pull(next, cause)
    if (next.kind === kinds.ProjectSecret) follow(next, before, cause)
    if (before) return
    clusters.created(next)
    if (next.kind === kinds.Team)
      for (const own of pins.values()) if (own.get(next.name) === open) own.set(next.name, next.uid)
    for (const uid of waiting.get(next.slot) ?? []) sources.get(uid)?.add(next.uid)
    waiting.delete(next.slot)
  }

  function remove(last: Known): void {
    objects.delete(last.slot)
    uids.delete(last.uid)
    gone.set(last.uid, last)
    byKind.delete(last.kind.plural)
  }

  return {
    objects,
    uids,
    gone,
    get version() {
      return version
    },
    get: (kind, namespace, name) => objects.get(slotOf(kind, namespace, name)),
    of(kind) {
      const there = byKind.get(kind.plural)
      if (there) return there
      const made = [...objects.values()].filter(one => one.kind === kind)
      byKind.set(kind.plural, made)
      return made
    },
    means: (object, team) => {
      const uid = teamUid(team)
      return uid !== undefined && pins.get(object.uid)?.get(team) === uid
    },
    pinOf: (object, team) => pins.get(object.uid)?.get(team) ?? open,
    pulls: (team, secret) => {
      const uid = teamUid(team)
      return uid !== undefined && pulled.get(uid)?.get(secret.slot) === secret.uid
    },
    names: clusters.names,
    sourcesOf: secret => sources.get(secret) ?? new Set(),
    apply({ type, plural, namespace, name, object }, cause) {
      const kind = byPlural.get(plural)
      if (!kind) throw new Error(`the model does not know ${plural}`)
      version++
      const slot = slotOf(kind, namespace, name)
      const before = objects.get(slot)
      if (type === 'deleted') {
        if (before) remove(before)
        return { before, after: undefined }
      }
      const uid = object.metadata.uid ?? ''
      const byServer = before ? before.byServer : cause === 'server'
      const after: Known = { slot, kind, namespace, name, uid, object, byServer }
      put(after, before, cause)
      return { before, after }
    },
  }
}

function sourceSlot({ spec }: Obj): string | undefined {
  const { name, namespace } = spec?.sharedSecretRef ?? {}
  return name ? slotOf(kinds.SharedSecret, namespace || 'default', name) : undefined
}

function storedPins({ metadata }: Obj, annotation: string): { readonly [team: string]: unknown } {
  try {
    const read: unknown = JSON.parse(metadata.annotations?.[annotation] ?? '{}')
    return typeof read === 'object' && read !== null ? (read as { [team: string]: unknown }) : {}
  } catch {
    return {}
  }
}
