// A server that the escalation prover attacks, with a clock that moves on demand.

import { mock } from 'node:test'
import type { Question } from '../../../src/api/kind.ts'
import type { Decision } from '../../../src/api/permissions.ts'
import type { ApiServer } from '../../../src/apiserver/api-server.ts'
import type { Storage } from '../../../src/storage/index.ts'
import { type HttpAnswer, type HttpRequest, send } from '../../support/direct-http.ts'
import { openDirectServer } from '../../support/direct-server.ts'

export type EscalationServer = {
  readonly apiServer: ApiServer
  readonly storage: Storage
  readonly adminKey: string
  now(): number
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** The server's current decision for the holder of a secret; undefined: the secret does not authenticate. */
  decide(secret: string): ((question: Question) => Decision) | undefined
  /** Resolves when controllers and indexes have processed every write. */
  settle(): Promise<void>
  /** Moves the clock and all timers of the server. */
  advance(seconds: number): Promise<void>
  close(): Promise<void>
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))
const retriesWithin = 60_000

/** Only one at a time, because it replaces the timers of the process. */
export async function openEscalationServer(): Promise<EscalationServer> {
  let time = Date.UTC(2026, 0, 2, 3, 4, 5)
  const now = () => time
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  let failures = 0
  let broken: unknown
  const server = await openDirectServer({
    now,
    failed: () => void failures++,
    observe: ({ code, error }) => {
      if (code >= 500) broken = error ?? new Error(`answered ${code}`)
    },
  })
  const { apiServer, storage, adminKey, controllers, handle } = server

  /** Events reach controllers, and permission changes their listeners, within two turns of the event loop. */
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
    // A controller that lost a race retries after a delay.
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
      await server.close()
      mock.timers.reset()
    },
  }
}
