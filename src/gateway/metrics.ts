// Metrics of the gateway.

import type { Logger } from 'pino'
import { ApiError } from '../api/errors.ts'
import type { Metrics } from '../serving/metrics.ts'
import type { Revocations } from './auth/revocations.ts'
import type { Reloads } from './config/reload.ts'
import type { GatewayObservation } from './gateway.ts'
import type { ActiveRequests } from './proxy/active-requests.ts'

const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

type Gauged = {
  readonly revocations: Pick<Revocations, 'age' | 'size'>
  readonly streams: ActiveRequests
  /** Age of the issuer's keys, in milliseconds. */
  readonly keysAge: () => number
  readonly reloads: Reloads
}

/** Returns a function to call for every request. */
export function observeGateway(metrics: Metrics, { revocations, streams, keysAge, reloads }: Gauged) {
  const requests = metrics.counter('gateway_requests_total', 'Requests by target and status code.')
  const duration = metrics.histogram(
    'gateway_request_duration_seconds',
    'Duration of requests other than streams.',
    buckets,
  )
  const seconds = (milliseconds: number) => Math.min(milliseconds / 1000, Number.MAX_SAFE_INTEGER)
  metrics.gauge('gateway_open_requests', 'Requests and streams in flight.', () => [[{}, streams.open]])
  metrics.readCounter(
    'gateway_cut_total',
    'Streams closed because their token or key was no longer valid, or could not be checked.',
    () => [[{}, streams.cut]],
  )
  metrics.gauge('gateway_revocations', 'Known revocations.', () => [[{}, revocations.size]])
  metrics.gauge('gateway_revocations_age_seconds', 'Time since the last contact with the revocation feed.', () => [
    [{}, seconds(revocations.age())],
  ])
  metrics.gauge(
    'gateway_key_set_age_seconds',
    'Time since the gateway last fetched the signing keys of the issuer.',
    () => [[{}, seconds(keysAge())]],
  )
  metrics.readCounter('gateway_reloads_total', 'Configuration reloads, by result.', () => [
    [{ result: 'used' }, reloads.used],
    [{ result: 'failed' }, reloads.failed],
  ])
  metrics.gauge('gateway_reload_failing', 'Whether the configuration reload is failing.', () => [
    [{}, reloads.failingSince === undefined ? 0 : 1],
  ])
  const known = new Map<string, (by: number) => void>()
  const timed = new Map<string, (value: number) => void>()
  return ({ route, code, seconds: taken }: GatewayObservation) => {
    const target = route?.target.target ?? 'none'
    const key = `${target} ${code}`
    const count = known.get(key) ?? requests({ target, code: String(code) })
    known.set(key, count)
    count(1)
    if (route?.isLong) return
    const time = timed.get(target) ?? duration({ target })
    timed.set(target, time)
    time(taken)
  }
}

/** Never logs a header, a body or a query. */
export function recordGateway(
  log: Logger,
  { exchange, route, principal, code, seconds, error }: GatewayObservation,
): void {
  const isBug = error !== undefined && !(error instanceof ApiError)
  if (!isBug && code < 500 && !log.isLevelEnabled('debug')) return
  const line = {
    audit: exchange.auditId,
    trace: exchange.span?.traceId,
    method: exchange.request.method,
    path: exchange.path,
    user: principal?.caller.username,
    target: route?.target.target,
    code,
    ms: Math.round(seconds * 1e4) / 10,
  }
  if (isBug) log.error({ ...line, err: error }, 'request failed')
  else if (code >= 500) log.warn({ ...line, ...reasonOf(error as Error | undefined) }, 'request failed')
  else log.debug(line, 'request')
}

/** `cause`: the part of the error that the client does not see. */
function reasonOf(error: Error | undefined): object {
  const cause = error?.cause instanceof Error ? error.cause.message.slice(0, 1024) : undefined
  return { why: error?.message, ...(cause === undefined ? {} : { cause }) }
}

const logEvery = 60_000

/** HTTP/2 connections that were closed because of a protocol error, before there was a request to answer. */
export function observeBroken(metrics: Metrics, log: Pick<Logger, 'warn'>, now: () => number) {
  const broken = metrics.counter(
    'gateway_broken_connections_total',
    'HTTP/2 connections closed after a protocol error, by reason.',
  )
  const seen = new Map<string, { readonly count: (by: number) => void; loggedAt: number; suppressed: number }>()
  return (why: string) => {
    const one = seen.get(why) ?? { count: broken({ why }), loggedAt: Number.NEGATIVE_INFINITY, suppressed: 0 }
    seen.set(why, one)
    one.count(1)
    // Any client can cause this, at any rate.
    if (now() - one.loggedAt < logEvery) return void one.suppressed++
    log.warn(
      { why, ...(one.suppressed ? { suppressed: one.suppressed } : {}) },
      'closed an HTTP/2 connection after a protocol error',
    )
    one.loggedAt = now()
    one.suppressed = 0
  }
}
