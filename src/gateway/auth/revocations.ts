// Follows revocations with an informer (D33): whether a token is still valid, and the age of that information.

import type { Kind } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { startInformer } from '../../reconcile/informer.ts'
import type { Principal } from './principal.ts'

export interface Revocations {
  /** Resolves after the first list. */
  readonly ready: Promise<void>
  /** Why a token or key is no longer valid; undefined: it is valid. */
  revokedReason(principal: Principal): string | undefined
  /**
   * Grows with every received revocation. Only revocations that arrive later affect a key that is reviewed now, because the
   * management API knew the earlier ones. This needs no synchronised clocks.
   */
  readonly order: number
  /** The sequence numbers, for a feed that replaces this one. */
  readonly sequenceNumbers: SequenceNumbers
  /** Forgets the numbers of deleted revocations. Call it after a replaced feed with the same numbers has stopped. */
  forget(): void
  readonly size: number
  /** Milliseconds since the last contact with the management API; infinite before the first list. */
  age(): number
  stop(): void
}

/** By uid. */
export type SequenceNumbers = { last: number; readonly known: Map<string, number> }

export type RevocationsOptions = {
  readonly resources: Resources
  /** The kind TokenRevocation. */
  readonly kind: Kind
  readonly now: () => number
  /** Called after every change. */
  readonly changed: () => void
  readonly failed: (error: unknown) => void
  /** Called after every contact with the management API. */
  readonly contacted?: () => void
  /** The feed inside the management API is never behind. */
  readonly isLocal?: boolean
  /** The feed that this one replaces: known revocations keep their numbers, new ones follow, so that principals stay comparable. */
  readonly sequenceNumbers?: SequenceNumbers
}

type Entry = {
  readonly keyUID?: string
  readonly jti?: string
  readonly users: readonly string[]
  readonly groups: readonly string[]
  /** Only tokens with this group; '': all. */
  readonly carrying: string
  /** Seconds by name, if different from `notBefore`. */
  readonly since: ReadonlyMap<string, number>
  readonly tokensOnly: boolean
  readonly reason: string
  /** Seconds. */
  readonly notBefore: number
  readonly uid: string
  /** Its number among all received revocations. */
  order: number
}

/** If several revocations have the same subject, the latest time applies to tokens, and the last received one to access keys. */
type RevokedSubject = {
  readonly forTokens: { readonly notBefore: number; readonly reason: string }
  readonly forKeys: { readonly order: number; readonly reason: string }
}
type Latest = Map<string, RevokedSubject>
type Index = { readonly keys: Latest; readonly ids: Latest; readonly users: Latest; readonly groups: Latest }
/** By the group that a token must have to be affected; '' for all tokens. */
type Indexes = ReadonlyMap<string, Index>

export function openRevocations(options: RevocationsOptions): Revocations {
  const { resources, kind, now, changed, failed, isLocal = false } = options
  const { sequenceNumbers = { last: 0, known: new Map() } } = options
  let lastContact = Number.NEGATIVE_INFINITY
  let order = sequenceNumbers.last
  let size = 0
  let indexes: Indexes | undefined
  let isNotifying = false
  const informer = startInformer({
    resources,
    kind,
    keep: read,
    failed,
    listsAfterFailure: !isLocal,
    contacted: () => {
      lastContact = now()
      options.contacted?.()
    },
    changed: (_, now, before) => {
      if (before && before.uid !== now?.uid) sequenceNumbers.known.delete(before.uid)
      // A new list repeats known revocations.
      if (now) now.order = (now.uid && sequenceNumbers.known.get(now.uid)) || ++sequenceNumbers.last
      if (now) sequenceNumbers.known.set(now.uid, now.order)
      indexes = undefined
      // Notifies once for several changes: a list of thousands must not cause a check each.
      if (isNotifying) return
      isNotifying = true
      setImmediate(() => {
        isNotifying = false
        order = sequenceNumbers.last
        changed()
      })
    },
  })
  const current = (): Indexes => {
    if (indexes) return indexes
    const all = [...informer.values()]
    size = all.length
    indexes = indexesOf(all)
    return indexes
  }
  return {
    ready: informer.ready,
    revokedReason(principal) {
      const all = current()
      if (all.size === 0) return undefined
      const reason = reasonIn(all.get(''), principal)
      if (reason !== undefined || (all.size === 1 && all.has(''))) return reason
      for (const group of principal.caller.groups) {
        const reason = reasonIn(all.get(group), principal)
        if (reason !== undefined) return reason
      }
      return undefined
    },
    get order() {
      return order
    },
    sequenceNumbers,
    forget() {
      const there = new Set([...informer.values()].map(({ uid }) => uid))
      for (const uid of sequenceNumbers.known.keys()) if (!there.has(uid)) sequenceNumbers.known.delete(uid)
    },
    get size() {
      current()
      return size
    },
    age: () => (isLocal && lastContact > Number.NEGATIVE_INFINITY ? 0 : now() - lastContact),
    stop: informer.stop,
  }
}

function reasonIn(index: Index | undefined, { keyUid, jti, issued, caller }: Principal): string | undefined {
  if (!index) return undefined
  const why = (about: RevokedSubject | undefined) => {
    if (!about) return undefined
    const { forKeys, forTokens } = about
    if (jti === undefined) return issued < forKeys.order ? forKeys.reason : undefined
    return issued <= forTokens.notBefore ? forTokens.reason : undefined
  }
  const { keys, ids, users, groups } = index
  const found = why(keys.get(keyUid)) ?? why(jti === undefined ? undefined : ids.get(jti))
  const reason = found ?? why(users.get(caller.username))
  if (reason !== undefined || groups.size === 0) return reason
  for (const group of caller.groups) {
    const reason = why(groups.get(group))
    if (reason !== undefined) return reason
  }
  return undefined
}

function indexesOf(entries: readonly Entry[]): Indexes {
  const indexes = new Map<string, Index>()
  for (const entry of entries) {
    const { carrying, keyUID, jti, users, groups } = entry
    const index = indexes.get(carrying) ?? { keys: new Map(), ids: new Map(), users: new Map(), groups: new Map() }
    indexes.set(carrying, index)
    if (keyUID) put(index.keys, keyUID, subjectOf(entry))
    if (jti) put(index.ids, jti, subjectOf(entry))
    for (const user of users) put(index.users, user, subjectOf(entry, user))
    for (const group of groups) put(index.groups, group, subjectOf(entry, group))
  }
  return indexes
}

function subjectOf({ notBefore, since, order, reason, tokensOnly }: Entry, name = ''): RevokedSubject {
  return {
    forTokens: { notBefore: Math.min(notBefore, since.get(name) ?? notBefore), reason },
    forKeys: { order: tokensOnly ? Number.NEGATIVE_INFINITY : order, reason },
  }
}

function put(map: Latest, name: string, { forTokens, forKeys }: RevokedSubject): void {
  const there = map.get(name)
  map.set(name, {
    forTokens: there && there.forTokens.notBefore >= forTokens.notBefore ? there.forTokens : forTokens,
    forKeys: there && there.forKeys.order >= forKeys.order ? there.forKeys : forKeys,
  })
}

function read({ metadata, spec = {} }: Resource): Entry {
  const {
    keyUID,
    jti,
    users = [],
    groups = [],
    carrying = '',
    since = {},
    tokensOnly,
    reason,
    notBefore,
  } = spec as {
    keyUID?: string
    jti?: string
    users?: readonly string[]
    groups?: readonly string[]
    carrying?: string
    since?: { readonly [name: string]: string }
    tokensOnly?: boolean
    reason?: string
    notBefore?: string
  }
  return {
    ...(keyUID ? { keyUID } : {}),
    ...(jti ? { jti } : {}),
    users,
    groups,
    carrying,
    since: new Map(Object.entries(since).map(([name, time]) => [name, secondOf(time)])),
    tokensOnly: tokensOnly === true,
    reason: reason || 'it was revoked',
    notBefore: secondOf(notBefore),
    uid: metadata.uid ?? '',
    order: 0,
  }
}

/** Without a time, the revocation applies to all tokens. */
function secondOf(time = ''): number {
  const second = Math.floor(Date.parse(time) / 1000)
  return Number.isNaN(second) ? Number.POSITIVE_INFINITY : second
}
