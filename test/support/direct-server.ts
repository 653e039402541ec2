// A whole server in this process, without sockets: the real wiring, controllers and request handler over a memory store.

import { randomBytes } from 'node:crypto'
import type { Resources } from '../../src/api/resources.ts'
import type { BuildOptions } from '../../src/apiserver/api-server.ts'
import { startBackgroundLoops } from '../../src/apiserver/background-loops.ts'
import { buildApiServer } from '../../src/apiserver/build.ts'
import { readSettings } from '../../src/apiserver/settings.ts'
import type { ServerOptions } from '../../src/http/server.ts'
import { makeKey } from '../../src/kinds/key-format.ts'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import type { Level } from '../../src/serving/audit-policy.ts'
import { openUnknownKeyLimiter } from '../../src/serving/unknown-key-limiter.ts'
import { openStorage } from '../../src/storage/index.ts'
import type { Store } from '../../src/storage/store.ts'
import { openHandler } from './request-handler.ts'

export type DirectServerOptions = {
  readonly now: () => number
  readonly auditLevel?: Level
  readonly observe?: ServerOptions['observe']
  /** Called when a controller fails. */
  readonly failed?: () => void
  /** Replaces the store of the API server, for tests that delay its writes. */
  readonly wrapStore?: (store: Store) => Store
  /** Creates objects before the first request, as the server. */
  readonly first?: (internalClient: Resources) => Promise<void>
  readonly signIn?: BuildOptions['signIn']
  /** The parts behind kinds that are not stored; absent: requests for them get a 503. */
  readonly unstored?: Pick<BuildOptions, 'auditLog' | 'previewPatches'> | undefined
}

const settings = await readSettings([], {})

export async function openDirectServer({
  now,
  auditLevel = 'None',
  observe = () => {},
  failed = () => {},
  wrapStore = store => store,
  first,
  signIn,
  unstored = {},
}: DirectServerOptions) {
  const storage = await openStorage({ engine: 'memory', directory: '', now })
  const guard = openUnknownKeyLimiter({ now, limit: 0 })
  const adminKey = makeKey(size => randomBytes(size))
  const apiServer = buildApiServer({
    storage: { ...storage, store: wrapStore(storage.store) },
    keys: [{ id: 'test', key: randomBytes(32) }],
    now,
    failed,
    guard,
    baseUrl: () => 'https://platform.test',
    signIn,
    ...unstored,
    first: async internalClient => {
      const admin = { metadata: { name: 'admin' }, spec: { user: 'admin', key: adminKey } }
      await internalClient.create(OwnedAccessKey, '', admin)
      await first?.(internalClient)
    },
  })
  await apiServer.ready
  const controllers = startBackgroundLoops({ apiServer, storage, settings, now, failed })
  await controllers.ready
  const ending = new AbortController()
  return {
    apiServer,
    storage,
    adminKey,
    controllers,
    handle: openHandler({ apiServer, guard, now, ending: ending.signal, auditLevel, observe }),
    async close() {
      ending.abort()
      await controllers.stop()
      apiServer.stop()
      await storage.close()
    },
  }
}
