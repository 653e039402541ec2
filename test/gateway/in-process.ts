// A gateway in this process, before a backend that a test makes by hand: real sockets, its own signing key, a clock that can be moved.

import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type CryptoKey, importJWK, type JWK, SignJWT } from 'jose'
import type { Scope } from '../../src/api/caller.ts'
import type { Json } from '../../src/api/object.ts'
import { openCredentials } from '../../src/gateway/auth/authenticator.ts'
import { headTooLarge } from '../../src/gateway/auth/bearer-token.ts'
import { openKeySet } from '../../src/gateway/auth/jwks.ts'
import { openRevocations, type Revocations } from '../../src/gateway/auth/revocations.ts'
import type { Review } from '../../src/gateway/auth/token-review-cache.ts'
import { type GatewayObservation, openGateway } from '../../src/gateway/gateway.ts'
import { type ActiveRequests, openActiveRequests } from '../../src/gateway/proxy/active-requests.ts'
import type { Backend, Timeouts } from '../../src/gateway/proxy/backend.ts'
import { isGatewayPath } from '../../src/gateway/proxy/routes.ts'
import { TokenRevocation } from '../../src/kinds/token-revocation.ts'
import { openAudit } from '../../src/serving/audit.ts'
import { openInflightLimits } from '../../src/serving/inflight-limits.ts'
import { type Listener, listenHttp, listenHttps } from '../../src/serving/listener.ts'
import type { CertificateSource } from '../../src/serving/tls.ts'
import { openUnknownKeyLimiter } from '../../src/serving/unknown-key-limiter.ts'
import { connectorTo } from '../../src/transport/connector.ts'
import type { Dial } from '../../src/transport/dial.ts'
import { openUpstream } from '../../src/transport/upstream.ts'
import { buildApiServer } from '../support/in-process.ts'

const issuer = 'https://issuer.test'

export type TestGateway = {
  readonly url: string
  readonly backend: TestBackend
  readonly privateKey: CryptoKey
  readonly publicJwk: JWK
  /** The metadata of the issuer. */
  readonly published: JWK[]
  readonly streams: ActiveRequests
  readonly revocations: Revocations
  readonly seen: GatewayObservation[]
  /** Lines of the audit log. */
  readonly lines: string[]
  readonly used: string[]
  /** Why connections by HTTP/2 were ended. */
  readonly broken: string[]
  sign(claims?: object, header?: object): Promise<string>
  revoke(spec: object): Promise<void>
  /** Milliseconds since the last contact with the management API. */
  feedAge: number
  close(): Promise<void>
}

export type Options = {
  readonly backend: TestBackend
  /** Default: the backend's. */
  readonly server?: string
  /** The whole way to the cluster, instead of one made by hand. */
  readonly dial?: Dial
  readonly timeouts?: Partial<Timeouts>
  readonly most?: number
  readonly review?: Review
  /** Grows when the service is trusted otherwise. */
  readonly generation?: () => number
  readonly certificates?: CertificateSource
  readonly refuse?: () => boolean
  /** The gateway's clock; default: the machine's, which the service has. */
  readonly now?: () => number
  /** Whether loopback is a proxy, whose X-Forwarded-For is believed. */
  readonly behindProxy?: boolean
  /** So many unknown keys of an address are too many; default: none are. */
  readonly guesses?: number
}

export const kid = 'signing-test'

export function makeKeys() {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicJwk = { ...pair.publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES256' } as JWK
  return { privateJwk: pair.privateKey.export({ format: 'jwk' }) as JWK, publicJwk }
}

export const claimsFor = (over: object = {}, scope?: Scope) => {
  const now = Math.floor(Date.now() / 1000)
  return {
    iss: issuer,
    aud: ['platform:direct-cluster-endpoint'],
    sub: 'ada',
    groups: ['system:authenticated', 'platform:user:ada', 'system:masters', 'ops'],
    iat: now,
    nbf: now,
    exp: now + 600,
    jti: randomUUID(),
    'platform.sh': { kind: 'User', name: 'ada', key: 'key-1', ...(scope ? { scope } : {}) },
    ...over,
  }
}

export async function openTestGateway(options: Options): Promise<TestGateway> {
  const { backend, timeouts = {}, most = 400, review = async () => undefined, certificates } = options
  const { privateJwk, publicJwk } = makeKeys()
  const privateKey = (await importJWK(privateJwk, 'ES256', { extractable: true })) as CryptoKey
  const published = [publicJwk]
  const apiServer = await buildApiServer({ clock: { now: Date.now, forward: () => {} } })
  const now = options.now ?? Date.now
  const keySet = openKeySet({
    fetch: async () => ({ keys: [...published] }) as Json,
    now,
    failed: () => {},
    atMostEvery: 20,
  })
  const guard = openUnknownKeyLimiter({
    now,
    limit: options.guesses ?? 0,
    trustedProxies: options.behindProxy ? ['127.0.0.1'] : [],
  })
  const credentials = openCredentials({
    issuer: () => issuer,
    keySet,
    review,
    generation: options.generation ?? (() => 0),
    order: () => revocations.order,
    addressOf: guard.addressOf,
    now,
  })
  const seen: GatewayObservation[] = []
  const lines: string[] = []
  const used: string[] = []
  const broken: string[] = []
  const state = { feedAge: 0 }
  const isFeedStale = () => state.feedAge > 900_000
  const revocations: Revocations = openRevocations({
    resources: apiServer.resources,
    kind: TokenRevocation,
    now,
    isLocal: true,
    changed: () => streams.recheck(),
    failed: () => {},
  })
  const streams: ActiveRequests = openActiveRequests({
    revocations: () => revocations,
    isFeedStale,
    isCurrent: credentials.isCurrent,
    now,
  })
  await revocations.ready
  const sink = {
    write: (line: string) => lines.push(line) > 0,
    failure: undefined,
    flush: async () => {},
    settled: async () => true,
    close: async () => {},
  }
  const policy = { rules: [{ level: 'Metadata' as const }], omitStages: ['RequestReceived' as const] }
  const server = options.server ?? backend.url
  const upstream = openUpstream({ server, connect: connectorTo({ server, insecure: false }, undefined) })
  const there: Backend = {
    name: 'cluster prod',
    server,
    now: async () => ({ upstream, authorization: 'Bearer of-the-gateway' }),
    refuse: options.refuse ?? (() => false),
    why: error => error.message,
    ...options.dial,
  }
  const gateway = openGateway({
    setup: () => ({
      find: place => (place.target === 'Cluster' && place.cluster === 'prod' ? { backend: there } : undefined),
      prefixes,
      timeouts: { connect: 10_000, answer: 30_000, take: 30_000, ...timeouts },
    }),
    clusterUid: () => undefined,
    credentials,
    revocations,
    staleFeedReason: () => (isFeedStale() ? 'the gateway has no contact with the management API' : undefined),
    streams,
    limits: openInflightLimits({ max: { read: most, write: most, watch: most }, share: 1, rate: 0, burst: 0, now }),
    guard,
    audit: openAudit({ policy, sink, hash: () => 'hash', now, sourcesOf: guard.sourcesOf, counted: () => {} }),
    used: uid => void used.push(uid),
    uuid: randomUUID,
    observe: one => void seen.push(one),
  })
  const upgrades = { wanted: ({ url }: IncomingMessage) => isGatewayPath(url), take: gateway.upgrade }
  const at = {
    host: '127.0.0.1',
    port: 0,
    upgrades,
    tooLarge: headTooLarge,
    broken: (why: string) => void broken.push(why),
  }
  const listener: Listener = certificates
    ? await listenHttps(at, certificates, gateway.handle)
    : await listenHttp(at, gateway.handle)
  return {
    url: listener.url,
    backend,
    privateKey,
    publicJwk,
    published,
    streams,
    revocations,
    seen,
    lines,
    used,
    broken,
    sign: (claims = claimsFor(), header = {}) =>
      new SignJWT(claims as never).setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid, ...header }).sign(privateKey),
    async revoke(spec) {
      await apiServer.resources.create(TokenRevocation, '', { spec } as Json)
    },
    get feedAge() {
      return state.feedAge
    },
    set feedAge(value) {
      state.feedAge = value
    },
    async close() {
      streams.close()
      revocations.stop()
      keySet.stop()
      await listener.close(0)
      upstream.destroy()
      await backend.close()
      await apiServer.close()
    },
  }
}

const prefixes = { userPrefix: '', groupPrefix: '' }

export type TestBackend = {
  readonly url: string
  readonly server: Server
  /** Every request it got. */
  readonly got: IncomingMessage[]
  /** Connections that are open. */
  readonly sockets: Set<Duplex>
  close(): Promise<void>
}

export async function openBackend(
  answer: RequestListener = (_, response) => void response.end('{"kind":"Status"}'),
): Promise<TestBackend> {
  const got: IncomingMessage[] = []
  const sockets = new Set<Duplex>()
  const server = createServer((request, response) => {
    got.push(request)
    answer(request, response)
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    got,
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy()
      if (server.listening) await new Promise(resolve => server.close(resolve))
    },
  }
}
