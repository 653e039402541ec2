// Shows the commits of a request in its trace.

import type { Tracing } from '../serving/tracing/tracing.ts'
import type { Storage } from '../storage/storage.ts'
import type { Store } from '../storage/store.ts'

/** Returns the storage itself without tracing, so that a commit costs nothing more. */
export function tracedStorage(storage: Storage, tracing: Tracing | undefined): Storage {
  if (!tracing) return storage
  const store = tracedStore(storage.store, tracing)
  const controllerStore =
    storage.controllerStore === storage.store ? store : tracedStore(storage.controllerStore, tracing)
  return { ...storage, store, controllerStore }
}

/** Inherits everything else: some properties of a store are computed when they are read. */
const tracedStore = (store: Store, tracing: Tracing): Store =>
  Object.create(store, {
    commit: { value: (ops: Parameters<Store['commit']>[0]) => tracing.part('storage.commit', () => store.commit(ops)) },
  }) as Store
