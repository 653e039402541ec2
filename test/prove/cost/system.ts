// A whole server in this process, without sockets: the real wiring, controllers and request handler over a memory store.
// The cost prover measures what a request costs the main thread.

import { randomBytes, randomUUID } from 'node:crypto'
import type { Resources } from '../../../src/api/resources.ts'
import { startBackgroundLoops } from '../../../src/apiserver/background-loops.ts'
import { buildApiServer } from '../../../src/apiserver/build.ts'
import { readSettings } from '../../../src/apiserver/settings.ts'
import { openRoutes } from '../../../src/http/non-resource-routes.ts'
import { requestHandler } from '../../../src/http/server.ts'
import { kinds } from '../../../src/kinds/index.ts'
import { makeKey } from '../../../src/kinds/key-format.ts'
import { OwnedAccessKey } from '../../../src/kinds/owned-access-key.ts'
import { openAudit } from '../../../src/serving/audit.ts'
import { openInflightLimits } from '../../../src/serving/inflight-limits.ts'
import { openMetrics } from '../../../src/serving/metrics.ts'
import { openUnknownKeyLimiter } from '../../../src/serving/unknown-key-limiter.ts'
import { openStorage } from '../../../src/storage/index.ts'
import { type HttpAnswer, type HttpRequest, type Streaming, send, stream } from '../escalation/direct-http.ts'

export type System = {
  readonly adminKey: string
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** An open watch. */
  watch(request: HttpRequest): Streaming
  close(): Promise<void>
}

const noSink = {
  write: () => true,
  failure: undefined,
  flush: async () => {},
  settled: async () => true,
  close: async () => {},
}

/** `first`: what is stored before requests come, by the server itself. */
export async function openSystem(first?: (inside: Resources) => Promise<void>): Promise<System> {
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
    first: async inside => {
      await inside.create(OwnedAccessKey, '', { metadata: { name: 'admin' }, spec: { user: 'admin', key: adminKey } })
      await first?.(inside)
    },
  })
  await apiServer.ready
  const controllers = startBackgroundLoops({ apiServer, storage, settings, now, failed })
  await controllers.ready
  const ending = new AbortController()
  const metrics = openMetrics()
  const audit = openAudit({
    policy: { rules: [{ level: 'Metadata' }] },
    sink: noSink,
    hash: () => '',
    now,
    sourcesOf: guard.sourcesOf,
    counted: () => {},
  })
  const handle = requestHandler({
    kinds,
    access: { ...apiServer, guard, audit },
    resourcesFor: apiServer.registry.as,
    reachVersion: apiServer.registry.reachVersion,
    indexed: apiServer.registry.indexed,
    noteRead: apiServer.noteRead,
    ...openRoutes({
      kinds,
      checks: { livez: [], readyz: [] },
      metrics,
      now,
      version: 'test',
      issuer: apiServer.issuer,
    }),
    limits: openInflightLimits({ most: { read: 400, write: 400, watch: 400 }, share: 1, rate: 0, burst: 0, now }),
    turns: () => undefined,
    refuseUnaudited: false,
    loopbackOnly: true,
    now,
    uuid: randomUUID,
    ending: ending.signal,
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
