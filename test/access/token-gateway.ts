// A service with a gateway in front of it, both real programs, for tests of what becomes of direct-cluster tokens.

import assert from 'node:assert/strict'
import { type GatewayProcess, invite, type Person, startGateway } from '../gateway/gateway-fixture.ts'
import { closeAll } from '../support/close-all.ts'
import type { Answer } from '../support/request.ts'
import { type Server, type ServerOptions, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'
import { keys, must, ours } from './people.ts'

export const revocations = `${ours}/tokenrevocations`
const merge = { 'Content-Type': 'application/merge-patch+json' }

export type Revocation = {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string }
  readonly spec: {
    readonly keyUID?: string
    readonly users?: readonly string[]
    readonly groups?: readonly string[]
    readonly carrying?: string
    readonly reason: string
    readonly notBefore: string
    readonly until: string
  }
}

export type TokenStage = {
  readonly service: Server
  readonly gateway: GatewayProcess
  invite(user: string, spec?: object): Promise<Person>
  /** As the administrator, unless `key` says otherwise. */
  ask(method: string, path: string, body?: unknown, key?: string): Promise<Answer>
  revocations(): Promise<readonly Revocation[]>
  uidOf(person: Person): Promise<string>
  /** The gateway's response to a token or an access key. */
  status(secret: string): Promise<number>
  /** Resolves once the gateway refuses it. */
  refused(secret: string): Promise<void>
  /** A watch that is open: its first event has come. */
  watch(secret: string): Promise<{ readonly ended: Promise<void>; readonly isOpen: () => boolean }>
  /** Resolves once a new token is accepted. Tokens of the second of a revocation are refused, so the first may not be. */
  mintsAgain(person: Person): Promise<string>
  close(): Promise<void>
}

/** The service is the cluster behind the gateway, too. */
export async function openTokenStage(options: ServerOptions = { storage: 'memory' }): Promise<TokenStage> {
  const service = await startServer(options)
  const gateway = await startGateway(service, { clusters: [{ name: 'prod', kubeconfig: service.kubeconfig }] })
  const status = async (secret: string) =>
    (await gateway.request('GET', '/kubernetes/cluster/prod/api', { key: secret })).status
  return {
    service,
    gateway,
    status,
    invite: (user, spec = {}) => invite(service, user, spec),
    ask: (method, path, body, key) =>
      service.request(method, path, {
        ...(body === undefined ? {} : { body }),
        ...(key === undefined ? {} : { key }),
        ...(method === 'PATCH' ? { headers: merge } : {}),
      }),
    revocations: async () => (await must(service.request('GET', revocations))).items,
    uidOf: async ({ name }) => (await must(service.request('GET', `${keys}/${name}`))).metadata.uid,
    refused: secret => eventually('the gateway refuses it', async () => (await status(secret)) === 401),
    async watch(secret) {
      // Everybody sees their own keys.
      const events = gateway.watch(`/kubernetes/cluster/prod${keys}`, { key: secret })
      assert.equal((await events.next()).value?.type, 'ADDED')
      let isOpen = true
      const drain = async () => {
        for await (const _ of events);
      }
      const end = () => {
        isOpen = false
      }
      return { ended: drain().then(end, end), isOpen: () => isOpen }
    },
    async mintsAgain(person) {
      let token = ''
      await eventually('a new token is accepted', async () => {
        token = await person.mint()
        return (await status(token)) === 200
      })
      return token
    },
    close: () => closeAll(gateway.stop, service.stop),
  }
}

/** Runs `work` for each of them, so many at once. */
export async function together<T>(
  items: readonly T[],
  most: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const waiting = [...items]
  const run = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await work(one)
  }
  await Promise.all(Array.from({ length: most }, run))
  assert.equal(waiting.length, 0)
}
