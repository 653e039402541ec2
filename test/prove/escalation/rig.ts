// A whole server in this process: the real wiring, controllers and request handler over a memory store, with a clock that moves on demand.

import { randomBytes, randomUUID } from 'node:crypto'
import { mock } from 'node:test'
import type { Question } from '../../../src/api/kind.ts'
import type { Decision } from '../../../src/api/permissions.ts'
import { startBackgroundLoops } from '../../../src/apiserver/background-loops.ts'
import { type ApiServer, buildApiServer } from '../../../src/apiserver/build.ts'
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
import { openStorage, type Storage } from '../../../src/storage/index.ts'
import { type HttpAnswer, type HttpRequest, send } from './direct-http.ts'

export type Rig = {
  readonly apiServer: ApiServer
  readonly storage: Storage
  readonly adminKey: string
  now(): number
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** What the server allows the holder of a secret now, as a request meets it; undefined: it does not let the secret in. */
  judge(secret: string): ((question: Question) => Decision) | undefined
  /** Resolves when controllers and indexes have caught up with every write. */
  settle(): Promise<void>
  /** Moves the clock, and with it every timer of the server. */
  advance(seconds: number): Promise<void>
  close(): Promise<void>
}

const noSink = {
  write: () => true,
  failure: undefined,
  flush: async () => {},
  settled: async () => true,
  close: async () => {},
}
const turn = () => new Promise<void>(resolve => setImmediate(resolve))
const retriesWithin = 60_000
const settings = await readSettings([], {})
const metrics = openMetrics()

/** Only one rig at a time: the timers of the process are its own. */
export async function openRig(): Promise<Rig> {
  let time = Date.UTC(2026, 0, 2, 3, 4, 5)
  const now = () => time
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const storage = await openStorage({ engine: 'memory', directory: '', now })
  let failures = 0
  const failed = () => void failures++
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
    },
  })
  await apiServer.ready
  const controllers = startBackgroundLoops({ apiServer, storage, settings, now, failed })
  await controllers.ready
  const ending = new AbortController()
  let broken: unknown
  const audit = openAudit({
    policy: { rules: [{ level: 'None' }] },
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
    observe: ({ code, error }) => {
      if (code >= 500) broken = error ?? new Error(`answered ${code}`)
    },
  })

  /** Events reach controllers, and changed rights reach their followers, within two turns of the event loop. */
  async function quiet(): Promise<void> {
    for (let before = -1; before !== storage.store.revision; ) {
      before = storage.store.revision
      await turn()
      await turn()
      await controllers.idle()
    }
  }

  async function settle(): Promise<void> {
    failures = 0
    await quiet()
    // A controller that lost a race tries again after a delay.
    for (let tries = 0; failures > 0 && tries < 5; tries++) {
      failures = 0
      mock.timers.tick(retriesWithin)
      await quiet()
    }
  }

  return {
    apiServer,
    storage,
    adminKey,
    now,
    async ask(request) {
      const answer = await send(handle, request)
      if (broken !== undefined)
        throw new Error(`the server failed: ${request.method} ${request.url}`, { cause: broken })
      return answer
    },
    judge(secret) {
      try {
        const caller = apiServer.authenticate(`Bearer ${secret}`, true)
        return question => apiServer.authorizer.judge(caller, question)
      } catch {
        return undefined
      }
    },
    settle,
    async advance(seconds) {
      time += seconds * 1000
      mock.timers.tick(seconds * 1000)
      await settle()
    },
    async close() {
      ending.abort()
      await controllers.stop()
      apiServer.stop()
      await storage.close()
      mock.timers.reset()
    },
  }
}
