// Tracks changes that have begun and are not committed yet.

import type { Kind } from '../api/kind.ts'

export type PendingWrites = {
  /** Passes on the promise of a change. */
  track<T>(kind: Kind, change: Promise<T>): Promise<T>
  /** Resolves when the changes of these kinds that have begun are committed or have failed, and the indexes have seen them. */
  settled(kinds: readonly Kind[]): Promise<void>
}

export function openPendingWrites(): PendingWrites {
  const pending = new Map<Kind, Set<Promise<unknown>>>()
  return {
    track(kind, change) {
      const changes = pending.get(kind) ?? new Set()
      pending.set(kind, changes.add(change))
      const done = () => void changes.delete(change)
      change.then(done, done)
      return change
    },
    async settled(kinds) {
      await Promise.allSettled(kinds.flatMap(kind => [...(pending.get(kind) ?? [])]))
      // Informers handle a committed change before the next turn of the event loop.
      await new Promise(setImmediate)
    },
  }
}
