// Tracks commits of changes that have not ended yet.

import type { Kind } from '../api/kind.ts'

export type PendingWrites = {
  /** Passes on the promise of a commit. */
  track<T>(kind: Kind, change: Promise<T>): Promise<T>
  /** Resolves when the running commits of changes of these kinds have ended, and the indexes have seen them. */
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
