// What was revoked (D33), followed with the ordinary informer: whether a token still counts, and how old that knowledge is.

import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { startInformer } from '../reconcile/informer.ts'
import type { Principal } from './principal.ts'

export interface Revocations {
  /** Resolves once the first list is in. */
  readonly ready: Promise<void>
  /** Why somebody's token or key counts no more; undefined: it does. */
  whyNot(principal: Principal): string | undefined
  /**
   * Grows with every revocation, once it was told of. Whoever is asked about now is judged by those that come later: the
   * service knew the others. Two machines' clocks have no part in it.
   */
  readonly order: number
  /** The places in that order, for one that takes over. */
  readonly places: Places
  /** Forgets the places of what is not there (any more): another one with the same places had heard of it, and has stopped. */
  forget(): void
  readonly size: number
  /** Milliseconds since the service was last heard; infinite before the first list. */
  age(): number
  stop(): void
}

/** By uid. */
export type Places = { last: number; readonly known: Map<string, number> }

export type RevocationsOptions = {
  readonly resources: Resources
  /** TokenRevocation, which this room may not import. */
  readonly kind: Kind
  readonly now: () => number
  /** Called after every change. */
  readonly changed: () => void
  readonly failed: (error: unknown) => void
  /** Called whenever the service was heard. */
  readonly heard?: () => void
  /** In the service itself what is not heard has not happened. */
  readonly isNear?: boolean
  /** Of one that it takes the place of: those known there keep theirs, and others come behind, so that principals are judged on. */
  readonly places?: Places
}

type Entry = {
  readonly keyUID?: string
  readonly jti?: string
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly reason: string
  /** Seconds. */
  readonly notBefore: number
  readonly uid: string
  /** Its place among all that were heard. */
  order: number
}

/** Of several about the same: the one with the latest time counts for tokens, the one that was heard last for keys. */
type About = { readonly forTokens: Entry; readonly forKeys: Entry }
type Latest = Map<string, About>
type Index = { readonly keys: Latest; readonly ids: Latest; readonly users: Latest; readonly groups: Latest }

export function openRevocations(options: RevocationsOptions): Revocations {
  const { resources, kind, now, changed, failed, isNear = false } = options
  const { places = { last: 0, known: new Map() } } = options
  let heard = Number.NEGATIVE_INFINITY
  let order = places.last
  let size = 0
  let index: Index | undefined
  let isTelling = false
  const informer = startInformer({
    resources,
    kind,
    keep: read,
    failed,
    listsAfterFailure: !isNear,
    heard: () => {
      heard = now()
      options.heard?.()
    },
    changed: (_, now, before) => {
      if (before && before.uid !== now?.uid) places.known.delete(before.uid)
      // A list tells of all of them again.
      if (now) now.order = (now.uid && places.known.get(now.uid)) || ++places.last
      if (now) places.known.set(now.uid, now.order)
      index = undefined
      // One look for all that comes together: a list of thousands must not cost a look each.
      if (isTelling) return
      isTelling = true
      setImmediate(() => {
        isTelling = false
        order = places.last
        changed()
      })
    },
  })
  const current = (): Index => {
    if (index) return index
    const all = [...informer.values()]
    size = all.length
    index = indexOf(all)
    return index
  }
  return {
    ready: informer.ready,
    whyNot({ keyUid, jti, issued, caller }) {
      const { keys, ids, users, groups } = current()
      if (keys.size + ids.size + users.size + groups.size === 0) return undefined
      const why = (about: About | undefined) => {
        if (!about) return undefined
        if (jti === undefined) return issued < about.forKeys.order ? about.forKeys.reason : undefined
        return issued <= about.forTokens.notBefore ? about.forTokens.reason : undefined
      }
      const found = why(keys.get(keyUid)) ?? why(jti === undefined ? undefined : ids.get(jti))
      const reason = found ?? why(users.get(caller.username))
      if (reason !== undefined || groups.size === 0) return reason
      for (const group of caller.groups) {
        const reason = why(groups.get(group))
        if (reason !== undefined) return reason
      }
      return undefined
    },
    get order() {
      return order
    },
    places,
    forget() {
      const there = new Set([...informer.values()].map(({ uid }) => uid))
      for (const uid of places.known.keys()) if (!there.has(uid)) places.known.delete(uid)
    },
    get size() {
      current()
      return size
    },
    age: () => (isNear && heard > Number.NEGATIVE_INFINITY ? 0 : now() - heard),
    stop: informer.stop,
  }
}

function indexOf(entries: readonly Entry[]): Index {
  const index: Index = { keys: new Map(), ids: new Map(), users: new Map(), groups: new Map() }
  const put = (map: Latest, key: string, entry: Entry) => {
    const { forTokens, forKeys } = map.get(key) ?? { forTokens: entry, forKeys: entry }
    map.set(key, {
      forTokens: entry.notBefore > forTokens.notBefore ? entry : forTokens,
      forKeys: entry.order > forKeys.order ? entry : forKeys,
    })
  }
  for (const entry of entries) {
    if (entry.keyUID) put(index.keys, entry.keyUID, entry)
    if (entry.jti) put(index.ids, entry.jti, entry)
    for (const user of entry.users) put(index.users, user, entry)
    for (const group of entry.groups) put(index.groups, group, entry)
  }
  return index
}

function read({ metadata, spec = {} }: Resource): Entry {
  const {
    keyUID,
    jti,
    users = [],
    groups = [],
    reason,
    notBefore,
  } = spec as {
    keyUID?: string
    jti?: string
    users?: readonly string[]
    groups?: readonly string[]
    reason?: string
    notBefore?: string
  }
  // Nobody knows since when: then all of them are meant.
  const since = Math.floor(Date.parse(notBefore ?? '') / 1000)
  return {
    ...(keyUID ? { keyUID } : {}),
    ...(jti ? { jti } : {}),
    users,
    groups,
    reason: reason || 'it was revoked',
    notBefore: Number.isNaN(since) ? Number.POSITIVE_INFINITY : since,
    uid: metadata.uid ?? '',
    order: 0,
  }
}
