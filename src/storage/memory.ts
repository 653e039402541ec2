// The memory engine: loses its data when the process ends. For tests and `--storage memory`.

import { openCommitQueue } from './commit-queue.ts'
import { putText } from './entry.ts'
import type { HistoryBounds } from './event-log.ts'
import type { Store } from './store.ts'
import { openWatchCache } from './watch-cache.ts'

export type MemoryOptions = { readonly now?: () => number; readonly history?: HistoryBounds }

export function openMemoryStore(options: MemoryOptions = {}): Store {
  const { now = Date.now, history } = options
  const watchCache = openWatchCache(history)
  const queue = openCommitQueue({ watchCache, now, write: async () => {} })

  return {
    get revision() {
      return watchCache.revision
    },
    get: watchCache.get,
    last: watchCache.last,
    list: watchCache.list,
    count: watchCache.count,
    index: watchCache.index,
    watch: watchCache.watch,
    commit: queue.commit,
    async replace(items) {
      const found = watchCache.replacements(items)
      for (const { entry, next } of found) putText(entry, next)
      return found.length
    },
    async compact(revision) {
      watchCache.trim(now(), revision)
    },
    confirm: () => undefined,
    outdated: undefined,
    failure: undefined,
    close: queue.close,
  }
}
