// The central route to connected clusters: from Cluster objects without a restart, with tokens of the server, and with the scope of the caller.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer, type Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { issueCertificate } from '../../src/serving/certificate.ts'
import { keys, must, ours, teams } from '../access/people.ts'
import { authority, type GatewayProcess, invite, startGateway } from '../gateway/gateway-fixture.ts'
import { openRequests } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually, openBare } from '../support/wire.ts'

const clusters = `${ours}/clusters`
const review = '/kubernetes/cluster/prod/apis/authentication.k8s.io/v1/selfsubjectreviews'
const caBundle = authority.certificate
const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'

let service: Server
let cluster: Server
let gateway: GatewayProcess
let request: ReturnType<typeof openRequests>['request']
let watch: ReturnType<typeof openRequests>['watch']
let recorded: HttpsServer
let requests: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = []
/** The response of the recording gateway. */
let answer: { readonly code: number; readonly headers?: { readonly [name: string]: string } } = { code: 200 }

before(async () => {
  ;[service, cluster] = await Promise.all([startServer({ storage: 'memory' }), startServer({ storage: 'memory' })])
  gateway = await startGateway(service, { clusters: [{ name: 'prod', kubeconfig: cluster.kubeconfig }] })
  ;({ request, watch } = openRequests({ base: service.https, ca: service.ca, key: '' }))
  const { certificate: cert, key } = issueCertificate(authority, ['127.0.0.1'], Date.now())
  recorded = createServer({ cert, key }, (incoming, response) => {
    requests.push({ url: incoming.url ?? '', headers: incoming.headers })
    response.writeHead(answer.code, { 'Content-Type': 'application/json', ...answer.headers }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(recorded, 'listening')
})
after(async () => {
  recorded.close()
  await gateway.stop()
  await Promise.all([service.stop(), cluster.stop()])
})

const recorder = () => `https://127.0.0.1:${(recorded.address() as AddressInfo).port}`
const connectTo = (name: string, spec: object) =>
  must(service.request('POST', clusters, { body: { metadata: { name }, spec } }))
const change = (name: string, spec: object) =>
  must(
    service.request('PATCH', `${clusters}/${name}`, {
      body: { spec },
      headers: { 'content-type': 'application/merge-patch+json' },
    }),
  )
const statusOf = async (path: string, key: string) => (await request('GET', path, { key })).status
const claimsIn = (header: string) => JSON.parse(Buffer.from(header.split('.')[1] ?? '', 'base64url').toString())

test('without Clusters the server has no gateway paths; a Cluster opens them without a restart', async () => {
  const ada = await invite(service, 'ada')
  const none = await request('POST', review, { key: ada.key, body: { spec: {} } })
  assert.equal(none.status, 403)
  assert.doesNotMatch(none.body.message ?? '', /is not configured on this gateway/)
  await connectTo('prod', { gateway: { url: gateway.url, caBundle } })
  for (const key of [
    ada.key,
    await ada.mint(),
    await ada.mint({ ttl: 60, scope: { clusters: [{ cluster: 'prod' }] } }),
  ]) {
    const { status } = await must(request('POST', review, { key, body: { spec: {} } }))
    assert.equal(status.userInfo.username, 'ada')
    assert.ok(status.userInfo.groups.includes('platform:user:ada'))
  }
  assert.equal(await statusOf('/kubernetes/cluster/prod/api/v1/namespaces', ada.key), 403, 'RBAC of the cluster')
  const unknown = await request('GET', '/kubernetes/cluster/other/api', { key: ada.key })
  assert.deepEqual([unknown.status, unknown.body.reason], [404, 'NotFound'])
  const elsewhere = await ada.mint({ scope: { clusters: [{ cluster: 'other' }] } })
  assert.equal(await statusOf('/kubernetes/cluster/prod/api', elsewhere), 403, 'the scope is checked first')
  const impersonating = { key: ada.key, headers: { 'Impersonate-User': 'admin' } }
  assert.equal((await request('GET', '/kubernetes/cluster/prod/api', impersonating)).status, 403)
})

test('a token for a cluster that was deleted is not for the one that has its name now', async () => {
  const spec = { gateway: { url: recorder(), caBundle } }
  const path = '/kubernetes/cluster/again/version'
  await connectTo('again', spec)
  const ann = await invite(service, 'ann')
  await eventually('the Cluster is known', async () => (await statusOf(path, ann.key)) === 200)
  const mint = () => ann.mint({ ttl: 600, scope: { clusters: [{ cluster: 'again' }] } })
  const old = await mint()
  // The token that the gateway of the first cluster got.
  requests = []
  assert.equal(await statusOf(path, old), 200)
  const seen = (requests[0]?.headers.authorization ?? '').slice('Bearer '.length)
  await must(service.request('DELETE', `${clusters}/again`))
  const headers = { 'content-type': 'application/merge-patch+json' }
  await service.request('PATCH', `${clusters}/again`, { headers, body: { metadata: { finalizers: null } } })
  await connectTo('again', spec)
  await eventually('the new Cluster is known', async () => (await statusOf(path, ann.key)) === 200)
  for (const key of [old, seen]) {
    const { status, text } = await request('GET', path, { key })
    assert.equal(status, 403, text)
    assert.match(text, /another cluster that had the name again/)
  }
  assert.equal(await statusOf(path, await mint()), 200)
})

test('the gateway gets a token for that cluster only, never the credential of the caller', async () => {
  await connectTo('seen', { gateway: { url: recorder(), caBundle } })
  const path = '/kubernetes/cluster/seen/api/v1/namespaces?limit=1'
  const bob = await invite(service, 'bob')
  const token = await bob.mint({ ttl: 600 })
  const issued = claimsIn(token)
  await eventually('the Cluster is known', async () => (await statusOf(path, bob.key)) === 200)
  requests = []
  const headers = { Cookie: 'a=b', 'X-Remote-User': 'admin' }
  for (const key of [bob.key, bob.key, token, token])
    assert.equal((await request('GET', path, { key, headers })).status, 200)
  assert.equal(requests.length, 4)
  const bearers = requests.map(one => one.headers.authorization ?? '')
  for (const { url, headers: sent } of requests) {
    assert.equal(url, path)
    assert.equal(JSON.stringify(sent).includes(bob.key) || JSON.stringify(sent).includes(token), false)
    assert.deepEqual(
      Object.keys(sent).filter(name => /^(impersonate|cookie|x-remote)/.test(name)),
      [],
    )
  }
  assert.deepEqual([bearers[0] === bearers[1], bearers[2] === bearers[3]], [true, true], 'tokens are cached')
  const [byKey, byToken] = [claimsIn(bearers[0] ?? ''), claimsIn(bearers[2] ?? '')]
  for (const claims of [byKey, byToken]) {
    assert.equal(claims.sub, 'bob')
    assert.deepEqual(claims['platform.sh'].scope, { clusters: [{ cluster: 'seen' }] })
    assert.equal(claims['platform.sh'].key, issued['platform.sh'].key)
  }
  assert.ok(byKey.exp - byKey.iat <= 900)
  // A revocation of the token of the caller is one of this token, too.
  assert.deepEqual([byToken.jti, byToken.iat, byToken.exp <= issued.exp], [issued.jti, issued.iat, true])
  const rules = [{ verbs: ['get', 'list'], resources: [{ group: '', resources: ['namespaces'] }] }]
  requests = []
  assert.equal(await statusOf(path, await bob.mint({ scope: { rules } })), 200)
  assert.deepEqual(claimsIn(requests[0]?.headers.authorization ?? '')['platform.sh'].scope, {
    rules: [{ ...rules[0], cluster: 'seen', requestTargets: ['Cluster'] }],
  })
})

test('an upgrade gets a token of the server, too, and passes data in both directions', async () => {
  const hal = await invite(service, 'hal')
  recorded.once('upgrade', (incoming, socket) => {
    requests.push({ url: incoming.url ?? '', headers: incoming.headers })
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.on('data', chunk => socket.end(`echo ${chunk}`))
  })
  requests = []
  const path = '/kubernetes/cluster/seen/api/v1/namespaces/a/pods/b/exec?command=sh'
  const { socket, until } = await openBare(service.https, { ca: service.ca })
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Host: a', `Authorization: Bearer ${hal.key}`]
  socket.write(`${[`GET ${path} HTTP/1.1`, ...upgrade].join('\r\n')}\r\n\r\n`)
  assert.match(await until('\r\n\r\n'), /^HTTP\/1\.1 101 /)
  socket.write('hello')
  assert.match(await until('echo hello'), /echo hello$/)
  const [{ url, headers } = assert.fail('nothing arrived')] = requests
  assert.equal(url, path)
  const { sub, 'platform.sh': holder } = claimsIn(headers.authorization ?? '')
  assert.deepEqual([sub, holder.scope], ['hal', { clusters: [{ cluster: 'seen' }] }])
  assert.equal(JSON.stringify(headers).includes(hal.key), false)
})

test('redirects are not followed, and a URL that leads back to this server does not loop', async () => {
  const { key } = await invite(service, 'cem')
  answer = { code: 307, headers: { Location: `${service.http}/metrics` } }
  const moved = await request('GET', '/kubernetes/cluster/seen/api', { key })
  assert.equal(moved.status, 502)
  assert.equal(moved.headers.location, undefined)
  answer = { code: 401 }
  requests = []
  const refused = await request('GET', '/kubernetes/cluster/seen/api', { key })
  assert.deepEqual([refused.status, requests.length], [502, 2], 'tried once more with a new token')
  assert.notEqual(requests[0]?.headers.authorization, requests[1]?.headers.authorization)
  answer = { code: 200 }
  await connectTo('loop', { gateway: { url: service.https, caBundle: service.ca } })
  await eventually('the loop is found', async () => {
    const { status, body } = await request('GET', '/kubernetes/cluster/loop/api', { key })
    return status === 502 && /leads back to a central route/.test(body.message)
  })
  await connectTo('untrusted', { gateway: { url: recorder(), caBundle: service.ca } })
  requests = []
  await eventually('only caBundle is trusted', async () => {
    const { status, body } = await request('GET', '/kubernetes/cluster/untrusted/api', { key })
    return status === 502 && /TLS handshake/.test(body.message)
  })
  assert.deepEqual(requests, [])
})

test('a change of the Cluster applies at once: URL, disabled, no gateway, deleted', async () => {
  const { key } = await invite(service, 'dee')
  const path = '/kubernetes/cluster/moves/api'
  await connectTo('moves', {})
  const becomes = (what: string, code: number, message: RegExp) =>
    eventually(what, async () => {
      const { status, text } = await request('GET', path, { key })
      return status === code && message.test(text)
    })
  await becomes('it has no gateway', 404, /has no gateway that this server can reach: set spec\.gateway\.url/)
  await change('moves', { gateway: { url: 'https://127.0.0.1:1', caBundle } })
  await becomes('its gateway is unreachable', 503, /the gateway of cluster moves is unreachable/)
  await change('moves', { gateway: { url: recorder() } })
  await becomes('the recorder answers', 200, /^{}$/)
  await change('moves', { disabled: true })
  await becomes('it is disabled', 503, /cluster moves is disabled/)
  await change('moves', { disabled: false })
  await becomes('it is enabled', 200, /^{}$/)
  await must(service.request('DELETE', `${clusters}/moves`))
  await becomes('it is deleted', 404, /cluster moves is not configured/)
})

test('a revoked key and a disabled Cluster end open watches', async () => {
  const subjects = ['eve', 'fay'].map(name => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }))
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-admin' }
  await must(cluster.request('POST', bindings, { body: { metadata: { name: 'people' }, roleRef, subjects } }))
  await must(cluster.request('POST', teams, { body: { metadata: { name: 'crew' }, spec: {} } }))
  const [eve, fay] = [await invite(service, 'eve'), await invite(service, 'fay')]
  const open = async (key: string) => {
    const events = watch(`/kubernetes/cluster/prod${teams}`, { key })
    assert.equal((await events.next()).value?.object.metadata.name, 'crew')
    return events
  }
  const endOf = async (events: Awaited<ReturnType<typeof open>>) => {
    const seen = []
    for await (const { type, object } of events) seen.push(`${type} ${(object as { code?: number }).code}`)
    return seen
  }
  const both = [await open(eve.key), await open(await eve.mint())]
  await must(service.request('DELETE', `${keys}/${eve.name}`))
  for (const watching of both) assert.deepEqual(await endOf(watching), ['ERROR 401'])
  await eventually('the key is refused', async () => (await statusOf('/kubernetes/cluster/prod/api', eve.key)) === 401)
  const watching = await open(fay.key)
  await change('prod', { disabled: true })
  await assert.rejects(endOf(watching), { code: 'ECONNRESET' })
  await change('prod', { disabled: false })
})

test('a replaced key works at once: the tokens of the old one are forgotten', async () => {
  const gus = await invite(service, 'gus')
  const path = '/kubernetes/cluster/prod/api'
  await eventually('the cluster is enabled', async () => (await statusOf(path, gus.key)) === 200)
  const { spec } = await must(service.request('POST', `${keys}/${gus.name}/rotate`, { body: {} }))
  await eventually('the old key is refused', async () => (await statusOf(path, gus.key)) === 401)
  await eventually('the new key is accepted', async () => (await statusOf(path, spec.key)) === 200)
})
