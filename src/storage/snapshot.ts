// Snapshots of a bucket at an older revision: the changes since then, as an overlay on the newest state. The cache uses them for lists.

import { sortKey } from './entry.ts'
import type { EventLog } from './event-log.ts'
import { addKey, type SortedKeys, sortedKeys } from './sorted-keys.ts'
import type { Entry } from './store.ts'

/** For every key that changed after the revision, its entry at the revision (undefined: none). */
export type Snapshot = { readonly before: ReadonlyMap<string, Entry | undefined>; readonly keys: SortedKeys }

type Kept = {
  readonly revision: number
  readonly before: Map<string, Entry | undefined>
  readonly keys: SortedKeys
  position: number
}

const MAX_KEPT = 16

export type Snapshots = {
  at(bucket: string, revision: number): Snapshot
  /** Drops the snapshots of dropped history. They would keep its entries in memory. */
  trim(): void
}

/** Snapshots are cached and extended. Otherwise each page of a long list would read the whole history since its start. */
export function openSnapshots(log: EventLog): Snapshots {
  const kept = new Map<string, Kept>()

  const at: Snapshots['at'] = (bucket, revision) => {
    const id = `${revision} ${bucket}`
    const snapshot = kept.get(id) ?? {
      revision,
      before: new Map<string, Entry | undefined>(),
      keys: sortedKeys(),
      position: log.positionAfter(bucket, revision),
    }
    const events = log.eventsFrom(bucket, snapshot.position)
    for (const event of events) {
      const key = sortKey(event.key.namespace, event.key.name)
      if (snapshot.before.has(key)) continue
      snapshot.before.set(key, event.previous)
      addKey(snapshot.keys, key)
    }
    snapshot.position += events.length
    // Inserted again, so that the map is ordered by last use.
    kept.delete(id)
    kept.set(id, snapshot)
    for (const oldest of kept.keys()) {
      if (kept.size <= MAX_KEPT) break
      kept.delete(oldest)
    }
    return snapshot
  }

  const trim = () => {
    for (const [id, { revision }] of kept) if (revision < log.floor) kept.delete(id)
  }
  return { at, trim }
}
