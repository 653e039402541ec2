// A server that the escalation prover attacks, with a clock that moves on demand.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock } from 'node:test'
import type { Question } from '../../../src/api/kind.ts'
import type { Decision } from '../../../src/api/permissions.ts'
import type { ApiServer } from '../../../src/apiserver/api-server.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { type HttpAnswer, type HttpRequest, send } from '../../support/direct-http.ts'
import { openDirectServer } from '../../support/direct-server.ts'
import { openDirectSignIn } from '../../support/direct-sign-in.ts'
import { audience, clientID, type IdentityProvider, startIdentityProvider } from './identity-provider.ts'
import { type AgentEntry, agentAccount, machineScope, noAgent } from './universe.ts'

export type EscalationServer = {
  readonly apiServer: ApiServer
  readonly storage: Storage
  readonly adminKey: string
  readonly provider: IdentityProvider
  /** The name of the session cookie. */
  readonly cookie: string
  /** Whether keys of users count only if there is a User. */
  readonly requiresUsers: boolean
  now(): number
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** Changes the Cluster that auth.yaml names for the tokens of service accounts. */
  nameAgent(agent: AgentEntry): void
  /** Lets the server verify a token of an issuer. */
  prepare(token: string): Promise<void>
  /** The server's current decision for the holder of a secret; undefined: the secret does not authenticate. */
  decide(secret: string): ((question: Question) => Decision) | undefined
  /** Resolves when controllers and indexes have processed every write. */
  settle(): Promise<void>
  /** Moves the clock and all timers of the server. Then every one of the secrets is used, so that the server refreshes their sign-ins. */
  advance(seconds: number, secrets: Iterable<string>): Promise<void>
  close(): Promise<void>
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))
const retriesWithin = 60_000
const sweepEvery = 60_000
/** A request follows the response to another one within these turns of the event loop. */
const calmTurns = 10

/** Only one at a time, because it replaces the timers of the process. */
export async function openEscalationServer(requiresUsers = false): Promise<EscalationServer> {
  let time = Date.UTC(2026, 0, 2, 3, 4, 5)
  const now = () => time
  const provider = await startIdentityProvider(now)
  const directory = mkdtempSync(join(tmpdir(), 'platform-escalation-'))
  const file = join(directory, 'auth.yaml')
  writeFileSync(file, JSON.stringify(authConfigOf(provider, noAgent)))
  // Opened with real timers, because it looks at the file every second.
  const auth = openDirectSignIn(file, now)
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  let failures = 0
  let broken: unknown
  const server = await openDirectServer({
    now,
    auth,
    requireUsers: requiresUsers,
    failed: () => void failures++,
    observe: ({ code, error }) => {
      // Sign-in while the provider is down.
      if (code >= 500 && code !== 502) broken = error ?? new Error(`answered ${code}`)
    },
  })
  const { apiServer, storage, adminKey, controllers, handle, cookie } = server

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

  /** The server fetches the keys of issuers every few minutes. The next tick must not end these requests. */
  async function fetched(): Promise<void> {
    const isConnecting = () => process.getActiveResourcesInfo().includes('TCPConnectWrap')
    for (let calm = 0; calm < calmTurns; ) {
      await turn()
      calm = isConnecting() || provider.isBusy() ? 0 : calm + 1
    }
  }

  return {
    apiServer,
    storage,
    adminKey,
    provider,
    cookie,
    requiresUsers,
    now,
    async ask(request) {
      const answer = await send(handle, request)
      if (broken !== undefined)
        throw new Error(`the server failed: ${request.method} ${request.url}`, { cause: broken })
      return answer
    },
    nameAgent(agent) {
      // Another file, because the server would read a change of its own again at any time.
      const other = join(directory, 'changed.yaml')
      writeFileSync(other, JSON.stringify(authConfigOf(provider, agent)))
      auth.useIssuersOf(other)
    },
    prepare: async token => apiServer.prepare(`Bearer ${token}`),
    decide(secret) {
      try {
        const caller = apiServer.authenticate(`Bearer ${secret}`, true)
        return question => apiServer.authorizer.decide(caller, question)
      } catch {
        return undefined
      }
    },
    settle,
    async advance(seconds, secrets) {
      time += seconds * 1000
      // A sweep that runs every minute would start for every minute before the first one ends.
      const first = Math.min(seconds * 1000, sweepEvery)
      for (const part of [first, seconds * 1000 - first].filter(one => one > 0)) {
        mock.timers.tick(part)
        await settle()
        await fetched()
      }
      for (const secret of secrets) await apiServer.prepare(`Bearer ${secret}`)
      await settle()
    },
    async close() {
      await server.close()
      await provider.stop()
      // The timer of a connection must not outlive the clock.
      while (process.getActiveResourcesInfo().some(one => one.startsWith('TCP'))) await turn()
      mock.timers.reset()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const mappings = { username: { claim: 'sub' }, groups: { claim: 'groups' } }

/** One provider of people, two issuers of machines, one of them with a scope, and the issuer of a cluster. */
const authConfigOf = ({ urls }: IdentityProvider, agent: AgentEntry) => ({
  apiVersion: 'config.platform.sh/v1',
  kind: 'AuthConfig',
  login: [{ name: 'corp', issuer: { url: urls.corp }, clientID, claimMappings: mappings }],
  jwt: [
    { name: 'ci', issuer: { url: urls.ci, audiences: [audience] }, claimMappings: mappings, scope: machineScope },
    { name: 'bot', issuer: { url: urls.bot, audiences: [audience] }, claimMappings: mappings },
    {
      name: 'kube',
      issuer: { url: urls.kube, audiences: [audience] },
      claimMappings: mappings,
      agent: { ...agent, ...agentAccount },
    },
  ],
})
