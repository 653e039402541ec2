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
import type { DirectSignIn } from './direct-sign-in.ts'
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
  /** Sign-in with an auth.yaml. The server stops it. */
  readonly auth?: DirectSignIn
  readonly requireUsers?: boolean
}

// The clock of a test may stand still, so limits per minute would never end.
const settings = await readSettings(['--limits-auth', '1000000', '--limits-auth-total', '1000000'], {})

export async function openDirectServer({
  now,
  auditLevel = 'None',
  observe = () => {},
  failed = () => {},
  wrapStore = store => store,
  first,
  signIn,
  unstored = {},
  auth,
  requireUsers = false,
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
    ...unstored,
    signIn: auth?.open ?? signIn,
    ...(auth ? { issuerOf: auth.issuerOf } : {}),
    requireUsers,
    first: async internalClient => {
      const admin = { metadata: { name: 'admin' }, spec: { user: 'admin', key: adminKey } }
      await internalClient.create(OwnedAccessKey, '', admin)
      await first?.(internalClient)
    },
  })
  await apiServer.ready
  const signedIn = await auth?.start(apiServer, { guard, settings })
  const controllers = startBackgroundLoops({ apiServer, storage, settings, now, failed })
  await controllers.ready
  const ending = new AbortController()
  return {
    apiServer,
    storage,
    adminKey,
    controllers,
    handle: openHandler({ apiServer, guard, now, ending: ending.signal, auditLevel, observe, signIn: signedIn }),
    /** The name of the session cookie, if there is sign-in. */
    cookie: signedIn?.cookie() ?? '',
    async close() {
      ending.abort()
      await controllers.stop()
      apiServer.stop()
      auth?.stop()
      await storage.close()
    },
  }
}
