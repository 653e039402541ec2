// The deletions in a bucket's history, by key, with the last states of deleted objects. The event log keeps one index per bucket.

import { sortKey } from './entry.ts'
import type { Key, StoreEvent } from './store.ts'

export type Deletions = {
  add(event: StoreEvent): void
  /** Removes the oldest deletion of a key: history is dropped in the order in which it was added. */
  dropOldest(key: Key): void
  /** The first deletion of a key after a revision. */
  firstAfter(key: Key, revision: number): StoreEvent | undefined
  clear(): void
}

export function openDeletions(): Deletions {
  const byKey = new Map<string, StoreEvent[]>()
  const idOf = ({ namespace, name }: Key) => sortKey(namespace, name)

  return {
    add(event) {
      const id = idOf(event.key)
      const events = byKey.get(id)
      if (events) events.push(event)
      else byKey.set(id, [event])
    },
    dropOldest(key) {
      const id = idOf(key)
      const events = byKey.get(id)
      events?.shift()
      if (events?.length === 0) byKey.delete(id)
    },
    firstAfter(key, revision) {
      const events = byKey.get(idOf(key)) ?? []
      // A client can delete and create one name thousands of times: no linear search.
      let low = 0
      let high = events.length
      while (low < high) {
        const middle = (low + high) >> 1
        if (events[middle]!.revision <= revision) low = middle + 1
        else high = middle
      }
      return events[low]
    },
    clear: () => byKey.clear(),
  }
}
