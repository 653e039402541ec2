// The contract of a storage engine. The registry reads and commits through it; memory.ts and sqlite/store.ts implement it.
//
// A store holds values under keys and counts revisions. It does not know kinds: a `bucket` is only a name.
//
// - There is one revision counter. A commit gets exactly one revision, higher than every earlier one; the revision
//   is allocated and the commit's events are logged in the same step, so nobody ever sees revision N+1 before N.
//   Concurrent commits have no order. Replicas that share an engine see the same revisions.
// - A commit is durable when its promise resolves. If it rejects, it has no effect and uses no revision; only 'unknown'
//   leaves that open. Concurrent commits keep their own revisions and share one fsync.
// - A commit changes at most one key of a bucket, so that within a bucket a revision names one event. It can check more keys.
// - Reads come from memory, from the state that the engine's own event stream built. A commit's promise resolves after its
//   events were applied, so a client reads its own writes. After `confirm`, reads also contain the commits of other replicas.
// - A text may be replaced by an equivalent one, such as a re-encrypted value. An engine with a single writer keeps its revision
//   and sends no event; readers see the one or the other, and older history may still show the replaced text. etcd cannot do
//   that: there, a replacement is an ordinary update.
// - History is bounded. A watch or a list before the oldest kept revision fails with StoreError 'compacted'.

import type { Buffer } from 'node:buffer'
import type { Candidates } from '../api/candidates.ts'

/** The key of a value: bucket is a kind (`teams.management.platform.sh`), namespace is '' for cluster-scoped kinds. */
export type Key = { readonly bucket: string; readonly namespace: string; readonly name: string }

/**
 * Canonical JSON of one object whose metadata.resourceVersion is the empty string, and the offset between its quotes. The
 * store inserts the revision there, because a value cannot contain its own revision before the commit.
 */
export type Value = {
  readonly text: Buffer
  readonly gap: number
  /** The labels and terms of the text, if the writer knows them. Saves parsing it. */
  readonly index?: { readonly labels: Labels; readonly terms: readonly string[] | undefined } | undefined
}

/** A value with its revision. `text` is complete and ready to send. It is shared, so do not modify it. */
export type Entry = {
  readonly key: Key
  readonly revision: number
  readonly text: Buffer
  readonly labels: Labels
}
export type Labels = { readonly [key: string]: string } | undefined

/** `expect`: the revision that the key must have; 0: the key must not exist; absent: any. A `check` changes nothing. */
export type Op =
  | { readonly type: 'put'; readonly key: Key; readonly value: Value; readonly expect?: number }
  | { readonly type: 'delete'; readonly key: Key; readonly expect?: number }
  | { readonly type: 'check'; readonly key: Key; readonly expect: number }

/** `revision`: the revision of the key, which does not change. */
export type Replacement = { readonly key: Key; readonly revision: number; readonly value: Value }

/** `entry` of a delete is the last state with the revision of the deletion; `previous` is the state before. */
export type StoreEvent = {
  readonly type: 'created' | 'updated' | 'deleted'
  readonly revision: number
  readonly key: Key
  readonly entry: Entry
  readonly previous: Entry | undefined
}

export type ListQuery = {
  readonly bucket: string
  /** '' or absent = every namespace. */
  readonly namespace?: string
  /** The snapshot to read; absent = the newest. Older than the kept history: 'compacted'. Beyond the newest: 'future'. */
  readonly revision?: number
  /** Only keys after this one, in byte order of `namespace/name`. */
  readonly after?: Ref
  /** Maximum number of entries in a page, after filtering; absent or 0: unlimited. */
  readonly limit?: number
  /** Equality terms, all of which must match. The index evaluates them. The caller still filters by its whole selector. */
  readonly labels?: readonly { readonly key: string; readonly values: readonly string[] }[]
  /**
   * Candidates: the keys whose newest state `filter` may keep, in terms of `Store.index`. The list skips other keys, except those
   * that changed after `revision`. Ignored if it has terms and the index is not complete.
   */
  readonly among?: Candidates
  /** Decides whether to keep an entry. Only kept entries count towards `limit`. */
  readonly filter?: (entry: Entry) => boolean
}
/** The terms that an entry is indexed by. Pure, never throws. */
export type TermsOf = (entry: Entry) => readonly string[]
type Ref = { readonly namespace: string; readonly name: string }

export type ListResult = {
  readonly entries: readonly Entry[]
  /** The revision of this list: of the snapshot, or the newest one at the time of reading. */
  readonly revision: number
  /**
   * `more`: whether a key that matches `labels` remains after the last entry (`filter` may still reject it). With `among`, other
   * keys may or may not count. `remaining`: the number of remaining keys, before labels and filter; 0 if `more` is false.
   */
  readonly more: boolean
  readonly remaining: number
}

/**
 * A cursor into a bucket's events, in order, without gaps or duplicates. It has no buffer. `take` throws 'compacted' for a reader
 * that falls behind the kept history.
 */
export interface Cursor {
  /** The available events, at most `max`. Never waits. */
  take(max: number): readonly StoreEvent[]
  /** Calls back once when there are events to take. If there are some already, it calls back in a microtask, never inside this call. */
  wait(wake: () => void): void
  /** The revision up to which this cursor has returned all events of its bucket. Safe for a bookmark. */
  readonly revision: number
  close(): void
}

export interface Store {
  /** The newest revision whose events readers can see. */
  readonly revision: number
  get(key: Key): Entry | undefined
  /**
   * The last state of the object in an entry: the newest one, or the one before its deletion. An object created under the same key
   * after a deletion is a different object. Use it for entries just returned by a list or cursor: after history drops a deletion,
   * its last state is unknown.
   */
  last(entry: Entry): Entry | undefined
  list(query: ListQuery): ListResult
  /** The number of keys in a bucket. */
  count(bucket: string): number
  /**
   * Indexes a bucket for `ListQuery.among`, from now on. Resolves once all its keys are in the index. Waits for `pause`
   * after every millisecond of work or so. Called once per bucket.
   */
  index(bucket: string, termsOf: TermsOf, pause: () => Promise<void>): Promise<void>
  /**
   * Resolves with the revision of the commit. Rejects with 'exists', 'missing' or 'conflict' if an `expect` does not match, with
   * 'missing' for a delete of a missing key, and with 'unavailable' if the engine cannot write. Do not modify values afterwards.
   */
  commit(ops: readonly Op[]): Promise<number>
  /**
   * Resolves when reads contain every commit that was acknowledged before the call, by this or another replica; undefined: they
   * do. Rejects with 'unavailable'.
   */
  confirm(): Promise<void> | undefined
  /** Why reads may be so old that revoked access is still visible; undefined: they are not. */
  readonly outdated: string | undefined
  /**
   * Replaces texts. Resolves with their number once they are durable. Skips keys with a newer revision. Rejects with
   * 'unavailable' if the engine cannot write; some texts may be replaced then, and none is lost.
   */
  replace(items: readonly Replacement[]): Promise<number>
  /** Events of a bucket with a revision greater than `after`. Before the kept history: 'compacted'. Beyond the newest: 'future'. */
  watch(bucket: string, after: number): Cursor
  /** Drops history before `revision`, within the bounds of the store. */
  compact(revision: number): Promise<void>
  /** Why writes fail at the moment; undefined: they work. For readiness. */
  readonly failure: string | undefined
  close(): Promise<void>
}

/**
 * `unknown`: the commit may have had an effect, or may have one later. `notLeader`: a commit of a controller whose replica is no
 * longer the leader. `tooLarge`: the engine cannot store the commit.
 */
export type StoreErrorReason =
  | 'exists'
  | 'missing'
  | 'conflict'
  | 'compacted'
  | 'future'
  | 'unavailable'
  | 'unknown'
  | 'notLeader'
  | 'tooLarge'

export class StoreError extends Error {
  readonly reason: StoreErrorReason
  readonly key: Key | undefined
  /** 'conflict', 'exists': the current revision. 'compacted': the oldest kept one. 'future': the newest. */
  readonly revision: number
  constructor(reason: StoreErrorReason, message: string, at: { key?: Key; revision?: number } = {}) {
    super(message)
    this.name = 'StoreError'
    this.reason = reason
    this.key = at.key
    this.revision = at.revision ?? 0
  }
}
