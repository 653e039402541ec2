// Lists the engines and opens them: a store and its activity table.

import { join } from 'node:path'
import { type Activity, openActivity } from './last-used.ts'
import { openMemoryStore } from './memory.ts'
import { unusableError } from './sqlite/errors.ts'
import { loadLog } from './sqlite/load.ts'
import { openSqliteStore, type ReportFailure } from './sqlite/store.ts'
import type { Store } from './store.ts'
import { openWatchCache } from './watch-cache.ts'

export type Storage = { readonly store: Store; readonly activity: Activity; close(): Promise<void> }
export type StorageOptions = {
  readonly engine: keyof typeof engines
  /** The directory of the SQLite engine; it must exist. */
  readonly directory: string
  readonly now: () => number
  readonly reportFailure?: ReportFailure
}

const engines = {
  async memory({ now }: StorageOptions) {
    return withActivity(openMemoryStore({ now }), openActivity())
  },
  async sqlite({ directory, now, reportFailure }: StorageOptions) {
    const store = await openSqliteStore({ file: join(directory, 'platform.db'), now, reportFailure })
    return withActivity(store, openActivity(store.times))
  },
}

/** Whether nothing was ever stored. */
export const isEmpty = ({ store }: Storage): boolean => store.revision <= 1

export const engineNames = Object.keys(engines)

export function openStorage(options: StorageOptions): Promise<Storage> {
  return engines[options.engine](options)
}

function withActivity(store: Store, activity: Activity): Storage {
  return {
    store,
    activity,
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
