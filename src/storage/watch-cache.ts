// The watch cache: the state and the event log that readers see, updated together, once per batch. Every engine feeds one.

import { type Cache, openCache } from './cache.ts'
import { type CachedEntry, cachedEntry, checkValue } from './entry.ts'
import { type EventLog, type HistoryBounds, openEventLog } from './event-log.ts'
import { openSnapshots } from './snapshot.ts'
import type { Cursor, Entry, Key, ListQuery, ListResult, Replacement, Store, StoreEvent } from './store.ts'

/** An event whose entries have the offset of their gap. */
export type CachedEvent = StoreEvent & { readonly entry: CachedEntry; readonly previous: CachedEntry | undefined }

export type WatchCache = {
  readonly revision: number
  readonly floor: number
  get(key: Key): CachedEntry | undefined
  last(entry: Entry): Entry | undefined
  list(query: ListQuery): ListResult
  count(bucket: string): number
  readonly index: Store['index']
  watch(bucket: string, after: number): Cursor
  /** Loads state that is older than the kept history, without an event. */
  seed(key: Key, entry: CachedEntry | undefined): void
  begin(revision: number, floor: number): void
  /** `events`: of whole commits, in order. `revision`: of the last commit. Readers see all of it or nothing. */
  apply(events: readonly CachedEvent[], revision: number, time: number): void
  /** The events of a key after a revision. Reads the history of its bucket. */
  eventsOf(key: Key, after: number): readonly StoreEvent[]
  /** Replaces everything by the state at a revision. History begins there, so cursors end with 'compacted'. */
  reload(entries: readonly CachedEntry[], revision: number): void
  /** The replacement texts with their entries, without keys that have a newer revision. */
  replacements(items: readonly Replacement[]): readonly { readonly entry: CachedEntry; readonly next: CachedEntry }[]
  /** Drops history beyond the bounds, up to `limit` if given. Returns the oldest kept revision. */
  trim(now: number, limit?: number): number
}

export function openWatchCache(bounds?: HistoryBounds): WatchCache {
  const cache: Cache = openCache()
  const log: EventLog = openEventLog(bounds)
  const snapshots = openSnapshots(log)
  const trim: WatchCache['trim'] = (now, limit) => {
    const floor = log.trim(now, limit)
    snapshots.trim()
    return floor
  }

  return {
    get revision() {
      return log.revision
    },
    get floor() {
      return log.floor
    },
    get: cache.get,
    count: cache.count,
    index: cache.index,
    last(entry) {
      const newest = cache.get(entry.key)
      if (newest?.revision === entry.revision) return newest
      // An object that has the key after a deletion is a different object.
      const deletion = log.deletionAfter(entry.key, entry.revision)
      return deletion ? deletion.previous : newest
    },
    list(query) {
      const revision = query.revision ?? log.revision
      log.check(revision)
      const page = cache.page(query, revision === log.revision ? undefined : snapshots.at(query.bucket, revision))
      return { entries: page.entries, revision, more: page.more, remaining: page.remaining }
    },
    watch: log.watch,
    seed(key, entry) {
      if (entry === undefined) cache.remove(key)
      else cache.put(entry)
    },
    begin: log.begin,
    apply(events, revision, time) {
      for (const { type, key, entry } of events) {
        if (type === 'deleted') cache.remove(key)
        else cache.put(entry)
      }
      log.append(events, revision, time)
      trim(time)
    },
    eventsOf: ({ bucket, namespace, name }, after) =>
      log
        .eventsFrom(bucket, log.positionAfter(bucket, after))
        .filter(({ key }) => key.name === name && key.namespace === namespace),
    reload(entries, revision) {
      for (const entry of entries) cache.put(entry)
      const kept = new Set(entries)
      for (const entry of [...cache.all()]) if (!kept.has(entry)) cache.remove(entry.key)
      log.restart(revision)
      snapshots.trim()
    },
    replacements: items =>
      items.flatMap(({ key, revision, value }) => {
        checkValue(value)
        const entry = cache.get(key)
        return entry?.revision === revision ? [{ entry, next: cachedEntry(key, revision, value, entry.labels) }] : []
      }),
    trim,
  }
}
