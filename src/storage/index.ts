// Lists the engines and opens them: a store and its activity table.

import { join } from 'node:path'
import { type Activity, openActivity } from './last-used.ts'
import { openMemoryStore } from './memory.ts'
import { unusableError } from './sqlite/errors.ts'
import { loadLog } from './sqlite/load.ts'
import { openSqliteStore } from './sqlite/store.ts'
import type { Storage, StorageOptions } from './storage.ts'
import type { Store } from './store.ts'
import { openWatchCache } from './watch-cache.ts'

const engines = {
  async memory({ now }: StorageOptions) {
    return onlyReplica(openMemoryStore({ now }), openActivity())
  },
  async sqlite({ directory, now, reportFailure }: StorageOptions) {
    const store = await openSqliteStore({ file: join(directory, 'platform.db'), now, reportFailure })
    return onlyReplica(store, openActivity(store.times))
  },
  async etcd(options: StorageOptions) {
    // Loaded only if it is used, because it has many modules.
    const { openEtcdStorage } = await import('./etcd/storage.ts')
    return openEtcdStorage(options)
  },
}

export const engineNames = Object.keys(engines)

export function openStorage(options: StorageOptions): Promise<Storage> {
  return engines[options.engine as keyof typeof engines](options)
}

function onlyReplica(store: Store, activity: Activity): Storage {
  return {
    store,
    activity,
    isEmpty: store.revision <= 1,
    controllerStore: store,
    lead: start => start(),
    isLeader: () => true,
    async close() {
      // A full disk must not stop the server from shutting down. At most a minute of activity is lost.
      await activity.close().catch(() => {})
      await store.close()
    },
  }
}

/** Reads the current contents of an SQLite store without its lock, while a server runs. */
export function readStored(directory: string): Pick<Store, 'list'> {
  const watchCache = openWatchCache()
  const file = join(directory, 'platform.db')
  try {
    loadLog(file, watchCache)
  } catch (error) {
    throw unusableError(file, error)
  }
  return watchCache
}
