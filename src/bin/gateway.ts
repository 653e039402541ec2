// `platform gateway`: verifies tokens beside a connected cluster and forwards what they allow, whether or not the service is there.

import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import pino, { type Logger } from 'pino'
import { defineCommand, type Io, UsageError } from '../cli/command.ts'
import { headTooLarge } from '../gateway/bearer.ts'
import { openCredentials } from '../gateway/credentials.ts'
import { openGateway } from '../gateway/gateway.ts'
import { openKeySet } from '../gateway/key-set.ts'
import { openReports } from '../gateway/reports.ts'
import { openRevocations, type Revocations } from '../gateway/revocations.ts'
import { isGatewayPath, noPlace } from '../gateway/routes.ts'
import { openStreams } from '../gateway/streams.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { openExchange, type Request, type Response } from '../serving/exchange.ts'
import { openFairLimits } from '../serving/fair-limits.ts'
import { openGuard } from '../serving/guard.ts'
import { type Check, healthPages } from '../serving/health.ts'
import { listenHttps } from '../serving/listener.ts'
import { openMetrics } from '../serving/metrics.ts'
import { respond, statusOf } from '../serving/respond.ts'
import { openAuditLog } from './audit-log.ts'
import { openComplaints } from './complaints.ts'
import { checkFiles, checkGateway } from './gateway-check.ts'
import { auditOf, certificatesOf } from './gateway-files.ts'
import { observeBroken, observeGateway, recordGateway } from './gateway-metrics.ts'
import { type FollowedSetup, followSetup } from './gateway-reload.ts'
import { openService, type Service } from './gateway-service.ts'
import { openSetupLoader } from './gateway-setup.ts'
import { startLean } from './lean.ts'
import { addressOf } from './settings.ts'
import { servePages } from './sync-metrics.ts'
import { toldToStop } from './told-to-stop.ts'

const drainWithin = 7000
/** After so long it is said that the service was not heard yet. */
const patience = 3000
/** A body that is uploaded may take its time. */
const requestWithin = 600_000

export const gateway = defineCommand({
  words: ['gateway'],
  what: 'Let tokens into connected clusters, beside them and without the service.',
  examples: [
    { what: 'Serve the clusters that a file names', command: 'platform gateway --config gateway.yaml' },
    { what: 'Say everything that is wrong with it', command: 'platform gateway --config gateway.yaml --check' },
  ],
  flags: {
    config: { type: 'text', value: 'FILE', what: 'The gateway.yaml; read again when it changes.', required: true },
    check: {
      type: 'switch',
      what: 'Look at the files, ask issuer, service and clusters, and end: 0: they can be used, 1: a cluster cannot be reached, 2: they cannot.',
    },
  },
  run: async ({ flags: { config: file, check } }, io) => {
    if (check) {
      const code = await checkGateway(file, io)
      if (code === 0) io.out(`${file} can be used\n`)
      return code
    }
    startLean(io.env)
    checkFiles(file, io)
    const loader = openSetupLoader(file, true, io)
    let log: Logger | undefined
    const setup = followSetup(loader, { info: text => log?.info(text), error: text => log?.error(text) })
    log = pino({ level: setup.config.logLevel ?? 'info', base: null }, pino.destination({ fd: 2, sync: false }))
    await run({ file, io, log, setup, service: openService(setup.config, file, io) })
    return 0
  },
})

type Running = {
  readonly file: string
  readonly io: Io
  readonly log: Logger
  readonly setup: FollowedSetup
  readonly service: Service
}

async function run({ file, io, log, setup, service }: Running): Promise<void> {
  const { now } = io
  const { config } = setup
  const failed = openComplaints(log, now)
  const told = toldToStop()
  const leaving = new AbortController()
  const metrics = openMetrics()
  const guard = openGuard({ now })
  const audit = await openAuditLog({
    ...auditOf(config, file),
    salt: auditOf(config, file).salt(),
    metrics,
    sourcesOf: guard.sourcesOf,
    now,
    failed: (what, error) => failed(what)(error),
  })
  const keySet = openKeySet({ fetch: service.fetchKeys, now, failed: failed('fetching the keys of the issuer') })
  const credentials = openCredentials({
    issuer: () => config.issuer?.url ?? '',
    keySet,
    review: service.review,
    order: () => revocations.order,
    addressOf: guard.addressOf,
    now,
  })
  const revocations: Revocations = openRevocations({
    resources: service.resources,
    kind: TokenRevocation,
    now,
    changed: () => streams.look(),
    failed: failed('following revocations'),
  })
  const serveWithout = (config.revocations?.serveWithout ?? 900) * 1000
  const whyBlind = () => blindness(revocations.age(), serveWithout)
  const streams = openStreams({ revocations: () => revocations, isBlind: () => whyBlind() !== undefined, now })
  const reports = openReports({ send: service.report, now, failed: failed('telling which keys were used') })
  const observe = observeGateway(metrics, { revocations, streams, keysAge: keySet.age })
  const { reads = 400, writes = 400, streams: watches = 10_000, share = 80 } = config.limits ?? {}
  const entrance = openGateway({
    setup: setup.current,
    credentials,
    revocations,
    whyBlind,
    streams,
    limits: openFairLimits({
      most: { read: reads, write: writes, watch: watches },
      share: share / 100,
      rate: 0,
      burst: 0,
      now,
    }),
    guard,
    audit,
    used: reports.used,
    uuid: randomUUID,
    observe: observation => {
      observe(observation)
      recordGateway(log, observation)
    },
  })
  const checks = checksOf({ keysAge: keySet.age, feedAge: revocations.age, whyBlind, leaving: leaving.signal })
  const pages = healthPages(checks)
  const other = (request: Request, response: Response) => {
    const exchange = openExchange(request, response, randomUUID)
    const answer = exchange.method === 'GET' ? pages(exchange.path, exchange) : undefined
    void respond(exchange, answer ?? missing())
  }
  const listener = await listenHttps(
    {
      ...addressOf(config.listen ?? ''),
      bounds: { requestWithin },
      tooLarge: headTooLarge,
      broken: observeBroken(metrics, log, now),
      upgrades: { wanted: ({ url }) => isGatewayPath(url), take: entrance.upgrade },
    },
    certificatesOf(config, file, { now, failed: failed('reading the new certificate') }),
    (request, response) => (isGatewayPath(request.url) ? entrance.handle(request, response) : other(request, response)),
  ).catch(error => {
    throw new UsageError([`${file}: listen: ${(error as Error).message}`])
  })
  const status =
    config.status === undefined || config.status === 'off'
      ? undefined
      : await servePages(config.status, checks, metrics)
  const urls = `${listener.url}${status ? ` ${status.url}` : ''}`
  const heard = Promise.all([keySet.ready, revocations.ready]).then(() => 'heard')
  const first = await Promise.race([heard, setTimeout(patience, 'late', { ref: false }), told])
  if (first === 'late')
    log.warn(`${urls} listens, and refuses everything until it has heard from the service: ${service.url}`)
  if ((await Promise.race([heard, told])) === 'heard') io.out(`platform gateway is ready: ${urls}\n`)

  await told
  log.info('shutting down: finishing what is under way')
  leaving.abort()
  setup.stop()
  const closing = listener.close(drainWithin)
  // Streams never end by themselves: who follows one comes back, to another gateway.
  await Promise.race([closing, setTimeout(1000)])
  streams.endLong()
  await closing
  streams.close()
  revocations.stop()
  keySet.stop()
  await reports.close()
  await status?.close(1000)
  await audit.close()
  service.close()
  log.flush()
}

function blindness(age: number, serveWithout: number): string | undefined {
  if (age <= serveWithout) return undefined
  return age === Number.POSITIVE_INFINITY
    ? 'the gateway has not heard yet from the service which tokens are revoked'
    : `the gateway has not heard for ${Math.round(age / 1000)} s from the service which tokens are revoked`
}

const missing = () => {
  const status = statusOf(noPlace())
  return { code: 404, type: 'application/json', body: new TextEncoder().encode(`${JSON.stringify(status)}\n`) }
}

/** How long ago the service was last heard about something (D33). */
const heard = (age: number) =>
  age === Number.POSITIVE_INFINITY ? 'never heard' : `heard ${Math.round(age / 1000)} s ago`

type Checked = {
  readonly keysAge: () => number
  readonly feedAge: () => number
  readonly whyBlind: () => string | undefined
  readonly leaving: AbortSignal
}

function checksOf({ keysAge, feedAge, whyBlind, leaving }: Checked): { livez: Check[]; readyz: Check[] } {
  const ping = { name: 'ping', failure: () => undefined }
  const keys = {
    name: 'keys',
    failure: () => (keysAge() === Number.POSITIVE_INFINITY ? 'no keys of the issuer yet' : undefined),
    about: () => heard(keysAge()),
  }
  const feed = { name: 'revocations', failure: whyBlind, about: () => heard(feedAge()) }
  const shutdown = { name: 'shutdown', failure: () => (leaving.aborted ? 'shutting down' : undefined) }
  return { livez: [ping], readyz: [ping, keys, feed, shutdown] }
}
