// `platform gateway`: verifies tokens beside a connected cluster and forwards what they allow, whether or not the service is there.

import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { dirname, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pino, { type Logger } from 'pino'
import { unknownPath } from '../api/errors.ts'
import { defineCommand, type Io, UsageError } from '../cli/command.ts'
import type { GatewayConfig } from '../gateway/config-schema.ts'
import { openCredentials } from '../gateway/credentials.ts'
import { openGateway } from '../gateway/gateway.ts'
import { openKeySet } from '../gateway/key-set.ts'
import { openReports } from '../gateway/reports.ts'
import { openRevocations, type Revocations } from '../gateway/revocations.ts'
import { isGatewayPath } from '../gateway/routes.ts'
import { openStreams } from '../gateway/streams.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { saltIn } from '../serving/audit-redact.ts'
import { openExchange, type Request, type Response } from '../serving/exchange.ts'
import { openFairLimits } from '../serving/fair-limits.ts'
import { openGuard } from '../serving/guard.ts'
import { type Check, healthPages } from '../serving/health.ts'
import { listenHttps } from '../serving/listener.ts'
import { openMetrics } from '../serving/metrics.ts'
import { respond, statusOf } from '../serving/respond.ts'
import { type CertificateSource, fileCertificate, ownCertificate } from '../serving/tls.ts'
import { openAuditLog } from './audit-log.ts'
import { authorityIn, openDirectory } from './data-directory.ts'
import { observeGateway, recordGateway } from './gateway-metrics.ts'
import { type FollowedSetup, followSetup } from './gateway-reload.ts'
import { openService, type Service } from './gateway-service.ts'
import { openSetupLoader } from './gateway-setup.ts'
import { addressOf } from './settings.ts'
import { servePages } from './sync-metrics.ts'
import { toldToStop } from './told-to-stop.ts'

const drainWithin = 7000
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
    check: { type: 'switch', what: 'Look at the files and end: 0: they can be used, 2: they cannot.' },
  },
  run: async ({ flags: { config: file, check } }, io) => {
    const loader = openSetupLoader(file, true, io)
    if (check) {
      openService(loader.load().config, file, io).close()
      io.out(`${file} can be used\n`)
      return 0
    }
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
  const failed = (what: string) => (error: unknown) => log.warn({ err: error }, `${what} failed; trying again`)
  const told = toldToStop()
  const leaving = new AbortController()
  const metrics = openMetrics()
  const guard = openGuard({ now })
  const audit = await openAuditLog({
    ...auditOf(config, file),
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
  const checks = checksOf({ keysAge: keySet.age, whyBlind, leaving: leaving.signal })
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
      upgrades: { wanted: ({ url }) => isGatewayPath(url), take: entrance.upgrade },
    },
    certificates(config, file, { now, failed: failed('reading the new certificate') }),
    (request, response) => (isGatewayPath(request.url) ? entrance.handle(request, response) : other(request, response)),
  ).catch(error => {
    throw new UsageError([`${file}: listen: ${(error as Error).message}`])
  })
  const status =
    config.status === undefined || config.status === 'off'
      ? undefined
      : await servePages(config.status, checks, metrics)
  // What is known soon is waited for, so that who reads that it is ready finds it so; without the service it starts all the same.
  await Promise.race([
    Promise.all([keySet.ready, revocations.ready]),
    setTimeout(5000, undefined, { ref: false }),
    told,
  ])
  io.out(`platform gateway is ready: ${listener.url}${status ? ` ${status.url}` : ''}\n`)

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
  const status = statusOf(unknownPath())
  return { code: 404, type: 'application/json', body: new TextEncoder().encode(`${JSON.stringify(status)}\n`) }
}

function certificates({ tls = {} }: GatewayConfig, file: string, { now, failed }: Tls): CertificateSource {
  const at = (path = '') => resolve(dirname(file), path)
  try {
    if (!tls.directory) return fileCertificate({ certificate: at(tls.certificate), key: at(tls.key), failed })
    openDirectory(at(tls.directory))
    const names = new Set(['localhost', '127.0.0.1', '::1', hostname(), ...(tls.names ?? [])])
    return ownCertificate(authorityIn(at(tls.directory), now()), [...names], now)
  } catch (error) {
    throw new UsageError([`${file}: tls: ${(error as Error).message}`])
  }
}

type Tls = { readonly now: () => number; readonly failed: (error: unknown) => void }

function auditOf({ audit = {} }: GatewayConfig, file: string) {
  const at = (path: string) => resolve(dirname(file), path)
  const log = audit.log ?? '-'
  return {
    settings: {
      'audit.log': log === '-' || log === 'off' ? log : at(log),
      'audit.policy': audit.policy ? at(audit.policy) : '',
      'audit.maxSize': 100,
      'audit.maxFiles': 10,
      'audit.maxAge': 0,
      'audit.refuseWrites': false,
    },
    directory: dirname(file),
    salt: audit.salt ? saltIn(at(audit.salt), true) : randomBytes(32),
  }
}

type Checked = {
  readonly keysAge: () => number
  readonly whyBlind: () => string | undefined
  readonly leaving: AbortSignal
}

function checksOf({ keysAge, whyBlind, leaving }: Checked): { livez: Check[]; readyz: Check[] } {
  const ping = { name: 'ping', failure: () => undefined }
  const keys = {
    name: 'keys',
    failure: () => (keysAge() === Number.POSITIVE_INFINITY ? 'no keys of the issuer yet' : undefined),
  }
  const feed = { name: 'revocations', failure: whyBlind }
  const shutdown = { name: 'shutdown', failure: () => (leaving.aborted ? 'shutting down' : undefined) }
  return { livez: [ping], readyz: [ping, keys, feed, shutdown] }
}
