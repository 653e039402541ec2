// The health checks of the server.

import type { Storage } from '../storage/storage.ts'

export function checksOf({ store, records }: Storage, shuttingDown: AbortSignal) {
  const ping = { name: 'ping', failure: () => undefined }
  // If etcd is full, all replicas can still read.
  const storage = { name: 'storage', failure: () => (records ? store.outdated : store.failure) }
  const shutdown = { name: 'shutdown', failure: () => (shuttingDown.aborted ? 'shutting down' : undefined) }
  return { livez: [ping], readyz: [ping, storage, shutdown] }
}
