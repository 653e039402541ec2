// Spans as a collector receives them, and what happens without one.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type Collector, startCollector } from '../../../test/support/otlp-collector.ts'
import { freePort } from '../../../test/support/ports.ts'
import type { Exchange } from '../exchange.ts'
import { openOtlpTracing } from './otlp.ts'

const caller = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const exchangeOf = (headers: { [name: string]: string } = {}, path = '/a') =>
  ({
    path,
    auditId: 'id-1',
    request: { method: 'GET', headers, socket: {}, httpVersionMajor: 1, httpVersion: '1.1' },
  }) as unknown as Exchange

function open(url: string) {
  const failures: string[] = []
  const exportLog = { failed: (reason: string) => void failures.push(reason), worked: () => {} }
  const settings = {
    url,
    headers: { 'x-token': 'abc' },
    resource: { 'service.name': 'test' },
    sampling: { ratio: 1, isParentBased: true },
  }
  return { tracing: openOtlpTracing(settings, { now: Date.now, random: Math.random, exportLog }), failures }
}

async function withCollector(t: TestContext): Promise<Collector & ReturnType<typeof open>> {
  const collector = await startCollector()
  t.after(collector.close)
  return { ...collector, ...open(`${collector.url}/v1/traces`) }
}

test('a request has a server span below the span of its caller, and parts below it', async t => {
  const { tracing, spans, headers } = await withCollector(t)
  const span = tracing.server(exchangeOf({ traceparent: caller }))
  assert.equal(span?.traceId, '0af7651916cd43dd8448eb211c80319c')
  await tracing.within(span, () => tracing.part('storage.commit', async () => 1))
  span.child('open until the end')
  span.end({ name: 'GET /a', attributes: { 'http.route': '/a', 'error.type': undefined }, isError: true })
  span.end({ name: 'a second end has no effect' })
  await tracing.close()
  assert.deepEqual(
    spans.map(({ name, kind, parentSpanId, isError }) => ({ name, kind, parentSpanId, isError })),
    [
      { name: 'storage.commit', kind: 'internal', parentSpanId: spanIdOf(span.traceparent), isError: false },
      { name: 'open until the end', kind: 'internal', parentSpanId: spanIdOf(span.traceparent), isError: false },
      { name: 'GET /a', kind: 'server', parentSpanId: 'b7ad6b7169203331', isError: true },
    ],
  )
  assert.deepEqual(spans[2]?.attributes, {
    'http.request.method': 'GET',
    'url.scheme': 'http',
    'network.protocol.version': '1.1',
    'user_agent.name': 'none',
    'http.route': '/a',
  })
  assert.equal(headers[0]?.['x-token'], 'abc')
})

const spanIdOf = (traceparent: string) => traceparent.split('-')[2]

test('background work is a trace of its own, and its requests carry the context', async t => {
  const { tracing, spans } = await withCollector(t)
  const sent: (string | undefined)[] = []
  const send = tracing.sending(async (_, init) => {
    sent.push((init.headers as { traceparent?: string } | undefined)?.traceparent)
    return new Response('', { status: sent.length === 2 ? 409 : 200 })
  })
  await send('http://cluster/a', {})
  await tracing.root('sync Endpoints', { 'platform.resource': 'endpoints' }, async () => {
    await send('http://cluster/a?token=canary', { method: 'PUT', headers: { Authorization: 'canary' } })
  })
  const broken = Object.assign(new Error('canary'), { code: 503 })
  await assert.rejects(
    tracing.root('sync Endpoints', {}, async () => {
      throw broken
    }),
    broken,
  )
  await tracing.close()
  const [client, root, failed] = spans
  assert.equal(sent[0], undefined, 'outside of a span there is nothing to pass on')
  assert.equal(sent[1], `00-${root?.traceId}-${client?.spanId}-01`)
  assert.deepEqual([client?.kind, client?.parentSpanId, client?.isError], ['client', root?.spanId, true])
  assert.deepEqual(client?.attributes, { 'http.request.method': 'PUT', 'http.response.status_code': 409 })
  assert.deepEqual([failed?.isError, failed?.attributes], [true, { 'error.type': '503' }])
  assert.notEqual(failed?.traceId, root?.traceId)
  assert.doesNotMatch(JSON.stringify(spans), /canary/)
})

test('probes and scrapes are not traced, objects with such names are', async t => {
  const { tracing } = await withCollector(t)
  for (const path of ['/readyz', '/livez/ping', '/metrics', '/kubernetes/management/healthz'])
    assert.equal(tracing.server(exchangeOf({}, path)), undefined, path)
  for (const path of ['/kubernetes/management/apis/a/v1/teams/metrics', '/readyzzz'])
    assert.ok(tracing.server(exchangeOf({}, path)), path)
  await tracing.close()
})

test('without a collector, nothing waits, spans are dropped, and closing ends', { timeout: 60_000 }, async () => {
  const { tracing, failures } = open(`http://127.0.0.1:${await freePort()}/v1/traces`)
  for (let index = 0; index < 10_000; index++) tracing.server(exchangeOf())?.end()
  // The exporter tries again for some seconds. Closing would not wait for that.
  while (failures.length === 0) await setTimeout(10)
  await tracing.close()
  assert.ok(failures.length <= 5, 'at most the queue was sent')
  assert.deepEqual([...new Set(failures)], ['ECONNREFUSED'])
})
