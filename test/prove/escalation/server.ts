// A whole server in this process: the real wiring, controllers and request handler over a memory store, with a clock that moves on demand.

import { randomBytes } from 'node:crypto'
import { mock } from 'node:test'
import type { Question } from '../../../src/api/kind.ts'
import type { Decision } from '../../../src/api/permissions.ts'
import { startBackgroundLoops } from '../../../src/apiserver/background-loops.ts'
import { type ApiServer, buildApiServer } from '../../../src/apiserver/build.ts'
import { readSettings } from '../../../src/apiserver/settings.ts'
import { makeKey } from '../../../src/kinds/key-format.ts'
import { OwnedAccessKey } from '../../../src/kinds/owned-access-key.ts'
import { openUnknownKeyLimiter } from '../../../src/serving/unknown-key-limiter.ts'
import { openStorage, type Storage } from '../../../src/storage/index.ts'
import { openHandler } from '../request-handler.ts'
import { type HttpAnswer, type HttpRequest, send } from './direct-http.ts'

export type Rig = {
  readonly apiServer: ApiServer
  readonly storage: Storage
  readonly adminKey: string
  now(): number
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** The server's current decision for the holder of a secret; undefined: the secret does not authenticate. */
  decide(secret: string): ((question: Question) => Decision) | undefined
  /** Resolves when controllers and indexes have caught up with every write. */
  settle(): Promise<void>
  /** Moves the clock, and with it every timer of the server. */
  advance(seconds: number): Promise<void>
  close(): Promise<void>
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))
const retriesWithin = 60_000
const settings = await readSettings([], {})

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
    first: async internalClient => {
      await internalClient.create(OwnedAccessKey, '', {
        metadata: { name: 'admin' },
        spec: { user: 'admin', key: adminKey },
      })
    },
  })
  await apiServer.ready
  const controllers = startBackgroundLoops({ apiServer, storage, settings, now, failed })
  await controllers.ready
  const ending = new AbortController()
  let broken: unknown
  const handle = openHandler({
    apiServer,
    guard,
    now,
    ending: ending.signal,
    auditLevel: 'None',
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
    decide(secret) {
      try {
        const caller = apiServer.authenticate(`Bearer ${secret}`, true)
        return question => apiServer.authorizer.decide(caller, question)
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
