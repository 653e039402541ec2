// Runs a standalone gateway next to a cluster. It verifies tokens and forwards requests, also while the management API is unreachable.

import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Io } from '../host/command.ts'
import { addressOf } from '../serving/address.ts'
import { openExchange } from '../serving/exchange.ts'
import { type Checks, healthPages } from '../serving/health.ts'
import { openInflightLimits } from '../serving/inflight-limits.ts'
import { type Address, type Handle, listenHttps } from '../serving/listener.ts'
import { openMetrics } from '../serving/metrics.ts'
import { gaugeProcess } from '../serving/process-metrics.ts'
import { respond, statusOf } from '../serving/respond.ts'
import { shutdownSignal } from '../serving/shutdown-signal.ts'
import { servePages } from '../serving/status-listener.ts'
import { openThrottledLog } from '../serving/throttled-log.ts'
import { openTracing } from '../serving/tracing/open.ts'
import { openUnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import { openAgentPart } from './agent/agent-part.ts'
import type { AgentClock } from './agent/session.ts'
import { openGatewayAudit } from './audit.ts'
import { openCredentials } from './auth/authenticator.ts'
import { headTooLarge } from './auth/bearer-token.ts'
import { openTrust, type Trust } from './auth/upstream-trust.ts'
import { openUsageReporter } from './auth/usage-reporter.ts'
import { openCertificates } from './certificates.ts'
import { checkFiles, logPreflight } from './config/preflight.ts'
import type { FollowedSetup } from './config/reload.ts'
import { type Change, prepareAll, prepareSome } from './config/reload-transaction.ts'
import type { GatewayConfig } from './config/schema.ts'
import { type Gateway, openGateway } from './gateway.ts'
import { checksOf } from './health.ts'
import { openListeners } from './listeners.ts'
import { observeBroken, observeGateway, recordGateway } from './metrics.ts'
import { openActiveRequests } from './proxy/active-requests.ts'
import { isGatewayPath, unknownRoute } from './proxy/routes.ts'

const drainWithin = 7000
/** Milliseconds before the log says that the management API is unreachable. */
const patience = 3000
/** An upload may take long. */
const requestWithin = 600_000

type Running = {
  readonly file: string
  readonly io: Io
  readonly log: Logger
  readonly setup: FollowedSetup
  readonly version: string
  /** URL of the collector of traces; empty: the environment decides. */
  readonly otlpEndpoint: string
}

/** Resolves after a signal stopped it. */
export async function runGateway({ file, io, log, setup, version, otlpEndpoint }: Running): Promise<void> {
  const { now } = io
  const { config } = setup
  const failed = openThrottledLog(log, now)
  const stopSignal = shutdownSignal()
  const shuttingDown = new AbortController()
  const tracing = await openTracing({
    endpoint: otlpEndpoint,
    env: io.env,
    service: 'platform-gateway',
    version,
    log,
    now,
  })
  const metrics = openMetrics()
  gaugeProcess(metrics)
  const guard = openUnknownKeyLimiter({ now })
  const audit = await openGatewayAudit(config, {
    file,
    metrics,
    sourcesOf: guard.sourcesOf,
    now,
    failed: (what, error) => failed(what)(error),
  })
  const trust: Trust = openTrust(config, { file, io, failed, changed: () => streams.recheck() })
  const { keySet, revocations } = trust
  const credentials = openCredentials({
    issuer: trust.issuer,
    keySet,
    review: key => trust.service().review(key),
    service: () => trust.service().url,
    generation: trust.generation,
    order: () => revocations.order,
    addressOf: guard.addressOf,
    now,
  })
  const staleFeedReason = () => staleness(revocations.age(), (setup.config.revocations?.serveWithout ?? 900) * 1000)
  const streams = openActiveRequests({
    revocations: () => revocations,
    isFeedStale: () => staleFeedReason() !== undefined,
    isCurrent: credentials.isCurrent,
    now,
  })
  const reports = openUsageReporter({
    send: uses => trust.service().report(uses),
    now,
    failed: failed('reporting the last use of access keys'),
  })
  const observe = observeGateway(metrics, { revocations, streams, keysAge: keySet.age, reloads: setup.reloads })
  const limits = openInflightLimits({ ...limitsOf(config), rate: 0, burst: 0, now })
  const gateway = openGateway({
    setup: setup.current,
    credentials,
    revocations,
    staleFeedReason,
    streams,
    limits,
    guard,
    audit,
    used: reports.used,
    clusterUid: cluster => agent.uidOf(cluster),
    tracing,
    uuid: randomUUID,
    observe: observation => {
      observe(observation)
      recordGateway(log, observation)
    },
  })
  const agent = openAgentPart({
    setup,
    metrics,
    dependencies: { service: trust.service, env: io.env, now, clock: realClock, version, log, failed },
  })
  const checks = checksOf({
    agent: agent.about,
    keySet,
    revocations,
    reloads: setup.reloads,
    staleFeedReason,
    shuttingDown: shuttingDown.signal,
    now,
  })
  const certificates = openCertificates(config, file, now)
  const broken = observeBroken(metrics, log, now)
  const listeners = await openListeners(config, {
    file,
    listen: address => listenHttps(atAddress(address, gateway, broken), certificates.view(), pathsOf(gateway, checks)),
    listenStatus: address => servePages(address, checks, metrics),
    info: text => log.info(text),
  })
  const putRest = (wanted: GatewayConfig) => {
    limits.resize(limitsOf(wanted))
    log.level = wanted.logLevel ?? 'info'
  }
  const rest = {
    prepare: (wanted: GatewayConfig): Change => ({
      use: () => putRest(wanted),
      drop: () => putRest(setup.config),
      done: () => void logPreflight(file, io, log),
    }),
  }
  setup.follow({
    info: text => log.info(text),
    error: text => log.error(text),
    check: () => checkFiles(file, io),
    prepare: wanted => prepareAll([certificates, trust, listeners, audit, rest, agent], wanted),
    renew: used => prepareSome([certificates, trust], used),
  })
  const connected = trust.ready.then(() => 'ready')
  const first = await Promise.race([connected, setTimeout(patience, 'late', { ref: false }), stopSignal])
  if (first === 'late')
    log.warn(
      `listening at ${listeners.urls()}; rejecting requests until the management API is reachable: ${trust.service().url}`,
    )
  if ((await Promise.race([connected, stopSignal])) === 'ready') {
    io.out(`platform gateway is ready: ${listeners.urls()}\n`)
    void logPreflight(file, io, log)
  }

  await stopSignal
  log.info('shutting down, draining requests')
  shuttingDown.abort()
  setup.stop()
  const closing = listeners.close(drainWithin)
  const agentStopped = agent.stop()
  // Streams never end by themselves. Their clients reconnect to another gateway.
  await Promise.race([closing, setTimeout(1000)])
  streams.endLong()
  await closing
  certificates.stop()
  streams.close()
  // The cluster may be unreachable. Its lease then expires.
  await Promise.race([agentStopped, setTimeout(drainWithin)])
  trust.stop()
  const unreported = await reports.close()
  if (unreported)
    log.warn(`cannot report the last use of ${unreported} access keys: the management API did not respond`)
  await listeners.closeStatus()
  await audit.close()
  trust.close()
  await tracing?.close()
  log.flush()
}

const realClock: AgentClock = {
  ticks: () => performance.now(),
  wait: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal, ref: false }).catch(() => {}),
  random: Math.random,
}

const limitsOf = ({ limits: { reads = 400, writes = 400, streams = 10_000, share = 80 } = {} }: GatewayConfig) => ({
  max: { read: reads, write: writes, watch: streams },
  share: share / 100,
})

const atAddress = (address: string, gateway: Gateway, broken: Address['broken']): Address => ({
  ...addressOf(address),
  bounds: { requestWithin },
  tooLarge: headTooLarge,
  broken,
  upgrades: { wanted: ({ url }) => isGatewayPath(url), take: gateway.upgrade },
})

/** Paths outside of clusters belong to the gateway itself. */
function pathsOf(gateway: Gateway, checks: Checks): Handle {
  const pages = healthPages(checks)
  const other: Handle = (request, response) => {
    const exchange = openExchange(request, response, randomUUID)
    const answer = exchange.method === 'GET' ? pages(exchange.path, exchange) : undefined
    void respond(exchange, answer ?? missing())
  }
  return (request, response) => (isGatewayPath(request.url) ? gateway.handle : other)(request, response)
}

function staleness(age: number, serveWithout: number): string | undefined {
  if (age <= serveWithout) return undefined
  return age === Number.POSITIVE_INFINITY
    ? 'the gateway has not received the list of revoked tokens yet'
    : `the gateway has had no contact with the revocation feed for ${Math.round(age / 1000)} s`
}

const missing = () => {
  const status = statusOf(unknownRoute('this is a gateway: to sign in, use the URL of the management API; '))
  return { code: 404, type: 'application/json', body: new TextEncoder().encode(`${JSON.stringify(status)}\n`) }
}
