// A whole server in this process, without sockets: the real wiring, controllers and request handler over a memory store.
// The cost prover measures what a request costs the main thread.

import { randomBytes } from 'node:crypto'
import type { Resources } from '../../../src/api/resources.ts'
import { startBackgroundLoops } from '../../../src/apiserver/background-loops.ts'
import { buildApiServer } from '../../../src/apiserver/build.ts'
import { readSettings } from '../../../src/apiserver/settings.ts'
import { makeKey } from '../../../src/kinds/key-format.ts'
import { OwnedAccessKey } from '../../../src/kinds/owned-access-key.ts'
import { openUnknownKeyLimiter } from '../../../src/serving/unknown-key-limiter.ts'
import { openStorage } from '../../../src/storage/index.ts'
import { type HttpAnswer, type HttpRequest, type Streaming, send, stream } from '../escalation/direct-http.ts'
import { openHandler } from '../request-handler.ts'

export type System = {
  readonly adminKey: string
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** An open watch. */
  watch(request: HttpRequest): Streaming
  close(): Promise<void>
}

/** `first`: creates objects before the first request, as the server. */
export async function openSystem(first?: (internalClient: Resources) => Promise<void>): Promise<System> {
  const now = Date.now
  const settings = await readSettings([], {})
  const storage = await openStorage({ engine: 'memory', directory: '', now })
  const failed = () => {}
  const guard = openUnknownKeyLimiter({ now, limit: 0 })
  const adminKey = makeKey(size => randomBytes(size))
  const apiServer = buildApiServer({
    storage,
    keys: [{ id: 'test', key: randomBytes(32) }],
    now,
    failed,
    guard,
    baseUrl: () => 'https://platform.test',
    first: async internalClient => {
      await internalClient.create(OwnedAccessKey, '', {
        metadata: { name: 'admin' },
        spec: { user: 'admin', key: adminKey },
      })
      await first?.(internalClient)
    },
  })
  await apiServer.ready
  const controllers = startBackgroundLoops({ apiServer, storage, settings, now, failed })
  await controllers.ready
  const ending = new AbortController()
  const handle = openHandler({
    apiServer,
    guard,
    now,
    ending: ending.signal,
    auditLevel: 'Metadata',
    observe: () => {},
  })
  return {
    adminKey,
    ask: request => send(handle, request),
    watch: request => stream(handle, request),
    async close() {
      ending.abort()
      await controllers.stop()
      apiServer.stop()
      await storage.close()
    },
  }
}
