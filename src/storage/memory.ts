// The engine without a disk: everything is gone when the process ends. For tests, and for `--storage memory`.

import { openCommitQueue } from './commit-queue.ts'
import { putText } from './entry.ts'
import type { HistoryBounds } from './event-log.ts'
import type { Store } from './store.ts'
import { openReplica } from './watch-cache.ts'

export type MemoryOptions = { readonly now?: () => number; readonly history?: HistoryBounds }

export function openMemoryStore(options: MemoryOptions = {}): Store {
  const { now = Date.now, history } = options
  const replica = openReplica(history)
  const queue = openCommitQueue({ replica, now, write: async () => {} })

  return {
    get revision() {
      return replica.revision
    },
    get: replica.get,
    last: replica.last,
    list: replica.list,
    count: replica.count,
    index: replica.index,
    watch: replica.watch,
    commit: queue.commit,
    async replace(items) {
      const found = replica.replacements(items)
      for (const { entry, next } of found) putText(entry, next)
      return found.length
    },
    async compact(revision) {
      replica.trim(now(), revision)
    },
    failure: undefined,
    close: queue.close,
  }
}
