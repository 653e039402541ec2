// Traces of the real programs at a collector: through a gateway to a cluster, of the syncer, and without a collector.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { must } from '../access/people.ts'
import { type GatewayProcess, invite, startGateway } from '../gateway/gateway-fixture.ts'
import { openCanaries } from '../support/canary.ts'
import { openHome } from '../support/cli-home.ts'
import { closeAll } from '../support/close-all.ts'
import { endpoints, openCluster, people } from '../support/cluster.ts'
import { killProgram, startProgram } from '../support/cluster-process.ts'
import { type Collector, startCollector } from '../support/otlp-collector.ts'
import { freePort } from '../support/ports.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerSpan = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${callerSpan}-01`
const api = '/apis/management.platform.sh/v1'
const linesOf = (text: string) =>
  text.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line) as { [name: string]: unknown }] : []))

describe('traces', { timeout: 180_000 }, () => {
  let collector: Collector
  let service: Server
  let cluster: Server
  let gateway: GatewayProcess
  before(async () => {
    collector = await startCollector()
    const env = (name: string) => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: name,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-token=canary-collector-token',
    })
    ;[service, cluster] = await Promise.all([
      startServer({ begin: { env: env('service') }, args: ['--log-level', 'debug'] }),
      startServer({ begin: { env: env('cluster') } }),
    ])
    gateway = await startGateway(
      service,
      { clusters: [{ name: 'prod', kubeconfig: cluster.kubeconfig }], logLevel: 'debug' },
      { args: ['--otlp-endpoint', collector.url] },
    )
  })
  after(() =>
    closeAll(
      () => gateway.stop(),
      () => Promise.all([service.stop(), cluster.stop()]),
      () => collector.close(),
    ),
  )

  test('a trace goes from the client through the gateway to the cluster', async () => {
    const admin = await invite(service, 'admin')
    const key = await admin.mint()
    const answer = await gateway.request('POST', `/kubernetes/cluster/prod${api}/teams?fieldManager=canary-query`, {
      key,
      body: { metadata: { name: 'canary-team' } },
      headers: { traceparent, 'user-agent': 'kubectl/canary-agent' },
    })
    assert.equal(answer.status, 201, answer.text)
    const inTrace = (service: string, kind: string) =>
      collector.find(`the ${kind} span of ${service}`, span => {
        return span.traceId === traceId && span.service === service && span.kind === kind
      })
    const arrived = await inTrace('platform-gateway', 'server')
    const forwarded = await inTrace('platform-gateway', 'client')
    const served = await inTrace('cluster', 'server')
    assert.equal(arrived.parentSpanId, callerSpan)
    assert.equal(forwarded.parentSpanId, arrived.spanId)
    assert.equal(served.parentSpanId, forwarded.spanId)
    assert.deepEqual([forwarded.attributes, forwarded.isError], [{ 'http.response.status_code': 201 }, false])
    const audit = answer.headers['audit-id']
    assert.equal(arrived.name, 'POST /kubernetes/cluster/{cluster}/{path}')
    assert.deepEqual(arrived.attributes, {
      'http.request.method': 'POST',
      'url.scheme': 'https',
      'network.protocol.version': '1.1',
      'user_agent.name': 'kubectl',
      'http.route': '/kubernetes/cluster/{cluster}/{path}',
      'http.response.status_code': 201,
      'platform.audit_id': audit,
      'platform.verb': 'create',
      'platform.target': 'Cluster',
      'platform.resource': 'teams',
    })
    assert.equal(served.name, `POST /kubernetes/management${api}/teams`)
    assert.equal(served.attributes['platform.audit_id'], audit, 'one id in both programs')
    const [line] = linesOf(gateway.output()).filter(one => one['audit'] === audit)
    assert.equal(line?.['trace'], traceId)
    await eventually('the audit event of the gateway has the trace', async () =>
      linesOf(readFileSync(join(gateway.directory, 'audit.log'), 'utf8')).some(
        ({ annotations }) => (annotations as { [name: string]: string })?.['platform.sh/trace-id'] === traceId,
      ),
    )
  })

  test('a write has spans for authorization and commit; log, audit event and response have its ids', async () => {
    const body = { metadata: { name: 'traced' } }
    const answer = await service.request('POST', `${api}/teams`, { body })
    assert.equal(answer.status, 201, answer.text)
    const audit = answer.headers['audit-id']
    const span = await collector.find('the span', ({ attributes }) => attributes['platform.audit_id'] === audit)
    assert.equal(span.name, `POST /kubernetes/management${api}/teams`)
    for (const name of ['authorize', 'storage.commit'])
      await collector.find(name, one => one.name === name && one.parentSpanId === span.spanId)
    const line = linesOf(service.output()).find(one => one['audit'] === audit)
    assert.deepEqual([line?.['trace'], line?.['level']], [span.traceId, 20])
    await eventually('the audit event', async () =>
      linesOf(readFileSync(join(service.directory, 'audit.log'), 'utf8')).some(
        ({ auditID, annotations }) =>
          auditID === audit && (annotations as { [name: string]: string })['platform.sh/trace-id'] === span.traceId,
      ),
    )
  })

  test('no span has a name, a key, a query, a header or a body', async () => {
    const canaries = openCanaries()
    const secret = (name: string, value: string) => ({
      metadata: { name },
      spec: { data: { 'canary-data-key': Buffer.from(value).toString('base64') } },
    })
    const namespaced = `${api}/namespaces/canary-namespace/sharedsecrets`
    const key = (await invite(service, 'canary-person')).key
    for (const text of [key, 'canary-', service.adminKey]) canaries.note(text)
    await must(service.request('POST', namespaced, { body: secret('canary-name', 'canary-value') }))
    await must(service.request('GET', `${namespaced}/canary-name`))
    const paths = [
      `${namespaced}/canary-missing`,
      '/canary-path',
      `${api}/canaryplurals`,
      `${api}/teams?limit=canary-limit`,
    ]
    for (const path of paths) await service.request('GET', path, { headers: { 'x-canary': 'canary-header' } })
    await service.request('GET', `${api}/teams`, {
      key: 'canary-wrong-key',
      headers: { traceparent: 'canary-context' },
    })
    await gateway.request('GET', '/kubernetes/cluster/canary-cluster/api/v1/canary-pods', { key })
    await gateway.request('PUT', '/kubernetes/project/canary-project/space/canary-space/x', {
      key,
      body: secret('a', 'b'),
    })
    await gateway.request('GET', '/kubernetes/cluster/prod/api/v1/canaryresources', { key })
    const last = await service.request('GET', `${api}/users`)
    const isLast = (id: string | undefined) => (span: { attributes: object }) =>
      (span.attributes as { [name: string]: unknown })['platform.audit_id'] === id
    await collector.find('the last span', isLast(last.headers['audit-id'] as string))
    const other = await gateway.request('GET', '/kubernetes/cluster/prod/api', { key })
    await collector.find('the last span of the gateway', isLast(other.headers['audit-id'] as string))
    assert.equal(canaries.in(collector.text()), undefined)
    assert.doesNotMatch(collector.text(), /canary/)
    assert.ok(collector.headers.some(headers => headers['x-token'] === 'canary-collector-token'))
    for (const text of [service.output(), gateway.output()]) assert.doesNotMatch(text, /canary-collector-token/)
  })

  test('a command continues the trace of its pipeline', async t => {
    const home = await openHome()
    t.after(() => home.close())
    await home.signIn(service)
    const own = '1af7651916cd43dd8448eb211c80319c'
    await home.ok('list teams', { env: { TRACEPARENT: `00-${own}-${callerSpan}-01` } })
    const span = await collector.find('the span of the command', one => one.traceId === own && one.kind === 'server')
    assert.deepEqual([span.parentSpanId, span.attributes['platform.resource']], [callerSpan, 'teams'])
  })

  test('the syncer traces each object that it syncs', async t => {
    const [virtual, host] = await Promise.all([openCluster(), openCluster()])
    const directory = mkdtempSync(join(tmpdir(), 'platform-tracing-'))
    const put = (name: string, text: string) => {
      writeFileSync(join(directory, name), text)
      return join(directory, name)
    }
    const program = join(import.meta.dirname, '../../bin/platform.js')
    const { child } = await startProgram(
      [
        ...[program, 'vcluster', 'sync', '-f', put('vcluster.yaml', ''), '--name', 'vc', '--namespace', 'team'],
        ...['--virtual-kubeconfig', put('v', virtual.kubeconfig), '--host-kubeconfig', put('h', host.kubeconfig)],
        ...['--otlp-endpoint', collector.url],
      ],
      /^platform: syncing endpoints of vc to (team)$/m,
    )
    t.after(async () => {
      await killProgram(child)
      await Promise.all([virtual.close(), host.close()])
      rmSync(directory, { recursive: true })
    })
    await people(virtual).service('web')
    await people(virtual).create(endpoints('web', {}))
    await eventually('the object is on the host', async () =>
      Boolean(await people(host).get({ namespace: 'team', name: hostName('web', 'default', 'vc') })),
    )
    const write = await collector.find(
      'the write to the host',
      one =>
        one.service === 'platform-vcluster-sync' &&
        one.kind === 'client' &&
        one.attributes['http.request.method'] === 'POST',
    )
    const root = await collector.find('the sync', one => one.spanId === write.parentSpanId)
    assert.deepEqual([root.name, root.attributes], ['sync Endpoints', { 'platform.resource': 'endpoints' }])
  })
})

test('an unreachable collector delays nothing, and is one line in the log', { timeout: 120_000 }, async () => {
  const server = await startServer({
    storage: 'memory',
    args: ['--otlp-endpoint', `http://127.0.0.1:${await freePort()}`],
  })
  const failures = () => linesOf(server.said()).filter(({ msg }) => /traces to the collector failed/.test(String(msg)))
  await must(server.request('GET', `${api}/teams`))
  await eventually('the failure is logged', async () => failures().length > 0)
  for (let index = 0; index < 50; index++) await must(server.request('GET', `${api}/teams`))
  await server.stop()
  assert.equal(failures().length, 1)
  assert.match(String(failures()[0]?.['msg']), /ECONNREFUSED$/)
})

test('without an endpoint, no module of OpenTelemetry is loaded, and a write has no log line', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-tracing-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const hook = join(directory, 'hook.mjs')
  writeFileSync(
    hook,
    `import { registerHooks } from 'node:module'
registerHooks({ load: (url, context, next) => { if (url.includes('opentelemetry') || url.includes('tracing/otlp')) console.log('loaded ' + url); return next(url, context) } })
`,
  )
  const server = await startServer({ storage: 'memory', begin: { imports: [hook] } })
  const answer = await server.request('POST', `${api}/teams`, {
    body: { metadata: { name: 'web' } },
    headers: { traceparent },
  })
  assert.equal(answer.status, 201)
  await server.stop()
  assert.doesNotMatch(server.said(), /^loaded/m)
  assert.deepEqual(
    linesOf(server.said()).filter(line => 'audit' in line),
    [],
  )
})

test('an invalid endpoint is a usage error that does not repeat its password', async () => {
  await assert.rejects(
    startServer({ args: ['--otlp-endpoint', 'https://u:canary-password@collector'] }),
    ({ message }: Error) => /must be an http or https URL/.test(message) && !message.includes('canary-password'),
  )
})
