// Runs the gateway inside `platform serve`, with the server's own keys, revocations and log.

import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { UnknownKey } from '../auth/authn/authenticate.ts'
import { openCredentials } from '../gateway/auth/authenticator.ts'
import { bearerOf } from '../gateway/auth/bearer-token.ts'
import { type KeySet, openKeySet } from '../gateway/auth/jwks.ts'
import { openRevocations, type Revocations } from '../gateway/auth/revocations.ts'
import type { Review } from '../gateway/auth/token-review-cache.ts'
import { type ClusterRoutes, openClusterRoutes } from '../gateway/cluster-routes.ts'
import { emptySetup, openSetupLoader } from '../gateway/config/load.ts'
import { openSetup } from '../gateway/config/reload.ts'
import { type Gateway, openGateway, type Setup } from '../gateway/gateway.ts'
import { observeBroken, observeGateway, recordGateway } from '../gateway/metrics.ts'
import { type ActiveRequests, openActiveRequests } from '../gateway/proxy/active-requests.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import type { Audit } from '../serving/audit.ts'
import type { InflightLimits } from '../serving/inflight-limits.ts'
import type { Metrics } from '../serving/metrics.ts'
import { openThrottledLog } from '../serving/throttled-log.ts'
import type { Tracing } from '../serving/tracing/tracing.ts'
import type { UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import type { ApiServer } from './api-server.ts'

export type EmbeddedGatewayOptions = {
  /** The path of gateway.yaml; empty: all targets are Cluster objects. */
  readonly file: string
  readonly apiServer: ApiServer
  readonly issuer: () => string
  readonly limits: InflightLimits
  readonly guard: UnknownKeyLimiter
  readonly audit: Audit
  readonly metrics: Metrics
  readonly log: Logger
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  readonly used: (keyUid: string) => void
  /** Why revocations of other replicas may be missing; undefined: none are. */
  readonly outdated: () => string | undefined
  readonly tracing: Tracing | undefined
}

export type EmbeddedGateway = Gateway & {
  /** Called for connections that were closed because of a protocol error. */
  readonly broken: (why: string) => void
  endStreams(): void
  stop(): void
}

/** The issuer is local, so check its keys every second. */
const lookEvery = 1000

/** Throws UsageError if the file is invalid. */
export async function openEmbeddedGateway(options: EmbeddedGatewayOptions): Promise<EmbeddedGateway> {
  const { file, apiServer, issuer, limits, guard, audit, metrics, log, env, now, used, outdated, tracing } = options
  const failed = openThrottledLog(log, now)
  const setup = file ? openSetup(openSetupLoader(file, false, { env, now }), now) : withoutFile()
  setup.follow({ info: text => log.info(text), error: text => log.error(text) })
  const routes = openClusterRoutes({
    resources: apiServer.registry.internalClient,
    sign: apiServer.issuer.sign,
    callerOf: request => apiServer.authenticate(`Bearer ${bearerOf(request)}`, true),
    env,
    now,
    failed: failed('watching clusters'),
  })
  const keySet: KeySet = openKeySet({
    fetch: async () => apiServer.issuer.keySet(),
    now,
    failed: failed('reading the signing keys'),
    every: lookEvery,
  })
  const credentials = openCredentials({
    issuer,
    keySet,
    review: reviewWith(apiServer, now),
    order: () => revocations.order,
    addressOf: guard.addressOf,
    now,
  })
  const revocations: Revocations = openRevocations({
    resources: apiServer.registry.internalClient,
    kind: TokenRevocation,
    now,
    isLocal: true,
    changed: () => {
      routes.forgetTokens()
      streams.recheck()
    },
    failed: failed('watching revocations'),
  })
  const streams: ActiveRequests = openActiveRequests({
    revocations: () => revocations,
    isFeedStale: () => outdated() !== undefined,
    isCurrent: credentials.isCurrent,
    now,
  })
  const observe = observeGateway(metrics, { revocations, streams, keysAge: keySet.age, reloads: setup.reloads })
  await Promise.all([revocations.ready, routes.ready])
  const gateway = openGateway({
    setup: withRoutes(setup.current, routes),
    clusterUid: routes.uidOf,
    credentials,
    revocations,
    staleFeedReason: outdated,
    streams,
    limits,
    guard,
    audit,
    used,
    tracing,
    uuid: randomUUID,
    observe: observation => {
      observe(observation)
      recordGateway(log, observation)
    },
  })
  return {
    ...gateway,
    broken: observeBroken(metrics, log, now),
    endStreams: streams.endLong,
    stop() {
      setup.stop()
      streams.close()
      routes.stop()
      revocations.stop()
      keySet.stop()
    },
  }
}

/** All targets are Cluster objects. */
function withoutFile(): Pick<ReturnType<typeof openSetup>, 'current' | 'reloads' | 'follow' | 'stop'> {
  const setup = emptySetup()
  return {
    current: () => setup,
    reloads: { used: 0, failed: 0, failingSince: undefined, isBehind: false },
    follow: () => {},
    stop: () => {},
  }
}

/** The targets of the file take precedence. */
function withRoutes(current: () => Setup, { find }: ClusterRoutes): () => Setup {
  const known = new WeakMap<Setup, Setup>()
  return () => {
    const setup = current()
    const made = known.get(setup) ?? { ...setup, find: target => setup.find(target) ?? find(target) }
    known.set(setup, made)
    return made
  }
}

const reviewWith =
  ({ authenticate, keyEnds }: ApiServer, now: () => number): Review =>
  async key => {
    try {
      const caller = authenticate(`Bearer ${key}`, true)
      const ends = keyEnds(key)
      return caller && { caller, keyUid: caller.keyUid ?? '', ...(ends === undefined ? {} : { endsIn: ends - now() }) }
    } catch (error) {
      if (error instanceof UnknownKey || (error as { code?: number }).code === 401) return undefined
      throw error
    }
  }
