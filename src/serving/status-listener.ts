// A plain HTTP listener for probes and metrics: /livez, /readyz and /metrics.

import { randomUUID } from 'node:crypto'
import { addressOf } from './address.ts'
import { openExchange } from './exchange.ts'
import { type Checks, healthPages } from './health.ts'
import { type Listener, listenHttp } from './listener.ts'
import type { Metrics } from './metrics.ts'
import { respond, textAnswer } from './respond.ts'

/** These pages contain no secrets, so they may listen on any address that probes reach. */
export function servePages(address: string, checks: Checks, metrics: Metrics): Promise<Listener> {
  const health = healthPages(checks)
  return listenHttp(addressOf(address), (request, response) => {
    const exchange = openExchange(request, response, randomUUID)
    const metricsPage = () => ({
      ...textAnswer(200, metrics.render()),
      type: 'text/plain; version=0.0.4; charset=utf-8',
    })
    const answer =
      exchange.path === '/metrics' ? metricsPage() : (health(exchange.path, exchange) ?? textAnswer(404, 'not found\n'))
    void respond(exchange, answer)
  })
}
