// A gateway whose file, or a file that it names, changes while it runs: everything of it is followed, and what cannot be used changes nothing.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { issueCertificate, type Pair } from '../../src/serving/certificate.ts'
import { keys, must, ours } from '../access/people.ts'
import { closeAll } from '../support/close-all.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'
import { freePort } from '../support/ports.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'
import { agentKey, authority, type GatewayProcess, invite, type Person, startGateway } from './gateway-fixture.ts'
import { openBackend, type TestBackend } from './in-process.ts'

const path = '/kubernetes/cluster/slow/api/v1/pods'
const clusters = [{ name: 'slow', kubeconfig: 'slow.json' }]

describe('a gateway whose files change', { timeout: 120_000, concurrency: true }, () => {
  let service: Server
  let other: Server
  let backend: TestBackend
  let ada: Person
  const watches = new Map<string, ServerResponse>()
  const running: GatewayProcess[] = []
  let marks = 0
  before(async () => {
    ;[service, other] = await Promise.all([startServer({ storage: 'memory' }), startServer({ storage: 'memory' })])
    backend = await openBackend((request, response) => {
      if (!request.url?.includes('watch=')) return void response.end('{}')
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"type":"ADDED","object":{}}\n')
      watches.set(request.url, response)
    })
    ada = await invite(service, 'ada')
  })
  after(async () => {
    await closeAll(
      () => Promise.all(running.map(one => one.stop())),
      () => backend.close(),
      () => Promise.all([service.stop(), other.stop()]),
    )
  })

  async function open(over: object = {}): Promise<GatewayProcess> {
    const gateway = await startGateway(service, { clusters, ...over }, { slow: backend.url })
    running.push(gateway)
    return gateway
  }
  const makePair = () => issueCertificate(authority, ['localhost', '127.0.0.1'], Date.now())
  const put = (gateway: GatewayProcess, name: string, text: string) =>
    writeFileSync(join(gateway.directory, name), text)
  const statusOf = async (gateway: GatewayProcess, key: string) => (await gateway.request('GET', path, { key })).status

  /** An open watch. Returns its next event, if the cluster sends one. */
  async function watch(gateway: Pick<GatewayProcess, 'watch'>, key: string) {
    const mark = `n${++marks}`
    const events = gateway.watch(`${path}?labelSelector=${mark}`, { key })
    await events.next()
    const there = [...watches].find(([url]) => url.includes(`labelSelector=${mark}&`))?.[1]
    return async (cluster: 'speaks' | 'is silent' = 'speaks') => {
      const next = events.next()
      if (cluster === 'speaks') there?.write('{"type":"MODIFIED","object":{}}\n')
      return (await next).value?.type as string | undefined
    }
  }

  const metric = async ({ status }: GatewayProcess, name: string) => {
    const text = await (await fetch(`${status}/metrics`)).text()
    return Number(
      text
        .split('\n')
        .find(line => line.startsWith(`${name} `))
        ?.split(' ')[1],
    )
  }
  async function isFailing(gateway: GatewayProcess, isSo: boolean): Promise<void> {
    const look = () =>
      eventually(isSo ? 'the files are not used' : 'the files are used', async () => {
        return (await metric(gateway, 'gateway_reload_failing')) === (isSo ? 1 : 0)
      })
    await look().catch(error => assert.fail(`${error}\n${gateway.output()}`))
  }
  const says = (gateway: GatewayProcess, words: RegExp) =>
    eventually(`it says ${words}`, async () => words.test(gateway.output()))
  const isStuck = (gateway: GatewayProcess) => isFailing(gateway, true)
  const isUsed = (gateway: GatewayProcess) => isFailing(gateway, false)

  /** The certificate that a new connection is shown. */
  async function shownAt(url: string, protocol: 'h2' | 'http/1.1'): Promise<string> {
    const { hostname: host, port } = new URL(url)
    const options = { host, port: Number(port), servername: 'localhost', rejectUnauthorized: false }
    const socket = connectTls({ ...options, ALPNProtocols: [protocol] })
    await once(socket, 'secureConnect')
    assert.equal(socket.alpnProtocol, protocol)
    const { fingerprint256 } = socket.getPeerX509Certificate() ?? {}
    socket.destroy()
    return fingerprint256 ?? ''
  }
  async function isShown(gateway: GatewayProcess, { certificate }: Pair): Promise<void> {
    const { fingerprint256 } = new X509Certificate(certificate)
    for (const protocol of ['h2', 'http/1.1'] as const)
      await eventually(
        `the new certificate is shown over ${protocol}`,
        async () => (await shownAt(gateway.url, protocol)) === fingerprint256,
      )
  }

  test('reloads a certificate: written in place, by swapped links, or with other names; open streams continue', async t => {
    const gateway = await open()
    const token = await ada.mint()
    const next = await watch(gateway, token)
    const session = connectHttp2(gateway.url, { ca: authority.certificate, servername: 'localhost' })
    session.on('error', () => {})
    t.after(() => session.destroy())
    await once(session, 'connect')
    const inPlace = makePair()
    put(gateway, 'tls.crt', inPlace.certificate)
    put(gateway, 'tls.key', inPlace.key)
    await isShown(gateway, inPlace)

    const mount = join(gateway.directory, 'mount')
    const release = (name: string, pair: Pair) => {
      mkdirSync(join(mount, name), { recursive: true })
      writeFileSync(join(mount, name, 'tls.crt'), pair.certificate)
      writeFileSync(join(mount, name, 'tls.key'), pair.key)
      symlinkSync(name, join(mount, '..tmp'))
      renameSync(join(mount, '..tmp'), join(mount, '..data'))
    }
    const [first, second] = [makePair(), makePair()]
    release('..1', first)
    for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(mount, name))
    gateway.write({ clusters, tls: { certificate: 'mount/tls.crt', key: 'mount/tls.key' } })
    await isShown(gateway, first)
    release('..2', second)
    await isShown(gateway, second)

    gateway.write({ clusters, tls: { directory: 'own' } })
    const { fingerprint256 } = new X509Certificate(second.certificate)
    for (const protocol of ['h2', 'http/1.1'] as const)
      await eventually(
        'it is of a CA of its own',
        async () => (await shownAt(gateway.url, protocol)) !== fingerprint256,
      )
    assert.doesNotMatch(gateway.output(), /tls.*cannot be used/)
    assert.equal(await next(), 'MODIFIED')
    assert.ok(!session.destroyed, 'a connection that was open stays')
  })

  test('rejects and reports a certificate that does not match its key, and uses it once it does', async () => {
    const gateway = await open()
    const [before, next] = [await shownAt(gateway.url, 'h2'), makePair()]
    put(gateway, 'tls.crt', next.certificate)
    await isStuck(gateway)
    assert.equal(await shownAt(gateway.url, 'h2'), before)
    await says(gateway, /tls: .*tls\.crt.* and .*tls\.key.* do not match/)
    await says(gateway, /keeping the previous configuration/)
    const ready = await fetch(`${gateway.status}/readyz?verbose`)
    assert.equal(ready.status, 200, 'the previous one serves')
    assert.match(await ready.text(), /^\[\+\]config ok: reload has been failing/m)
    put(gateway, 'tls.key', next.key)
    await isShown(gateway, next)
    await isUsed(gateway)
    assert.match(await (await fetch(`${gateway.status}/readyz?verbose`)).text(), /^\[\+\]config ok: up to date/m)
  })

  test('reports all problems of new files together, and uses none of them', async () => {
    const gateway = await open()
    const token = await ada.mint()
    const next = await watch(gateway, token)
    put(gateway, 'no-ca.crt', 'hello')
    gateway.write({
      clusters: [...clusters, { name: 'gone', kubeconfig: 'missing.json' }],
      tls: { certificate: 'missing.crt', key: 'tls.key' },
      issuer: { url: service.https, ca: 'no-ca.crt' },
      limits: { reads: 1, share: 101 },
    })
    await isStuck(gateway)
    for (const words of [
      /cluster gone: cannot read .*missing\.json/,
      /tls: cannot read .*missing\.crt/,
      /issuer\.ca: .*no-ca\.crt does not contain a PEM certificate/,
      /limits\.share must be a percentage/,
    ])
      await says(gateway, words)
    assert.equal(await statusOf(gateway, token), 200)
    // A file that only the unused one names is waited for, too.
    gateway.write({ clusters: [...clusters, { name: 'more', kubeconfig: 'later.json' }] })
    await eventually('it is told', async () => /cluster more: cannot read .*later\.json/.test(gateway.output()))
    put(gateway, 'later.json', kubeconfigOf(backend.url))
    await isUsed(gateway)
    const { status } = await gateway.request('GET', '/kubernetes/cluster/more/api', { key: token })
    assert.equal(status, 200)
    assert.equal(await next(), 'MODIFIED')
  })

  test('reloads limits for the next request and counts open requests; also the audit log path', async () => {
    const gateway = await open()
    const token = await ada.mint()
    const next = await watch(gateway, token)
    gateway.write({ clusters, limits: { streams: 1, share: 100 } })
    await eventually('one more is too many', async () => (await asWatch(gateway, token)) === 429)
    assert.equal(await next(), 'MODIFIED')
    const logged = async (name: string, auditId: string) => {
      const { status } = await gateway.request('GET', path, { key: 'nobody', headers: { 'audit-id': auditId } })
      assert.equal(status, 401)
      await eventually('it is logged', async () =>
        readFileSync(join(gateway.directory, name), 'utf8').includes(auditId),
      )
    }
    await logged('audit.log', 'before-1')
    gateway.write({ clusters, limits: { streams: 3, share: 100 }, audit: { log: 'second.log' } })
    await eventually('slots are free again', async () => (await asWatch(gateway, token)) === 200)
    await logged('second.log', 'after-1')
    assert.doesNotMatch(readFileSync(join(gateway.directory, 'audit.log'), 'utf8'), /after-1/)
  })
  const asWatch = async (gateway: GatewayProcess, key: string) => {
    const events = gateway.watch(path, { key })
    try {
      await events.next()
      await events.return?.()
      return 200
    } catch (error) {
      return Number(/answered with (\d+)/.exec((error as Error).message)?.[1])
    }
  }

  test('uses another issuer after the first contact; tokens of the previous one are rejected, and their streams end', async () => {
    const gateway = await open()
    const bob = await invite(other, 'bob')
    const [old, theirs] = [await ada.mint(), await bob.mint()]
    assert.deepEqual([await statusOf(gateway, old), await statusOf(gateway, theirs)], [200, 401])
    assert.deepEqual([await statusOf(gateway, ada.key), await statusOf(gateway, bob.key)], [200, 401])
    const next = await watch(gateway, old)
    const withKey = await watch(gateway, ada.key)
    put(gateway, 'other-ca.crt', other.ca)
    put(gateway, 'other.key', await agentKey(other))
    const moved = { clusters, issuer: { url: other.https, ca: 'other-ca.crt' }, service: { keyFile: 'other.key' } }

    gateway.write({ ...moved, issuer: { url: other.https, ca: 'service-ca.crt' } })
    await isStuck(gateway)
    await says(gateway, /did not respond within .*certificate is not trusted/)
    assert.equal(await statusOf(gateway, old), 200)
    assert.equal(await next(), 'MODIFIED')

    const cut = [next('is silent'), withKey('is silent')]
    gateway.write(moved)
    await isUsed(gateway)
    assert.deepEqual([await statusOf(gateway, old), await statusOf(gateway, theirs)], [401, 200])
    assert.deepEqual([await statusOf(gateway, ada.key), await statusOf(gateway, bob.key)], [401, 200])
    assert.deepEqual(await Promise.all(cut), ['ERROR', 'ERROR'])
  })

  test('fetches the keys of the same issuer from another address; streams continue, and end with their key', async () => {
    const gateway = await open()
    const token = await ada.mint()
    const next = await watch(gateway, token)
    const guest = await invite(service, 'guest')
    // A key that is valid again: revocations from before its review do not affect it after the change either.
    const spent = await guest.mint()
    await must(
      service.request('POST', `${ours}/tokenrevocations`, { body: { spec: { users: ['guest'], reason: 'r' } } }),
    )
    await eventually('it is heard', async () => (await statusOf(gateway, spent)) === 401)
    const ofKey = await watch(gateway, guest.key)
    const used = await metric(gateway, 'gateway_reloads_total{result="used"}')
    const keySet = `${service.https.replace('127.0.0.1', 'localhost')}/.well-known/jwks.json`
    gateway.write({ clusters, issuer: { url: service.https, ca: 'service-ca.crt', keySet } })
    await eventually(
      'it is used',
      async () => (await metric(gateway, 'gateway_reloads_total{result="used"}')) > (used || 0),
    )
    assert.equal(await statusOf(gateway, token), 200)
    assert.equal(await next(), 'MODIFIED')
    assert.equal(await ofKey(), 'MODIFIED')
    const cut = ofKey('is silent')
    await must(service.request('DELETE', `${keys}/${guest.name}`))
    assert.equal(await cut, 'ERROR')
    assert.equal(await next(), 'MODIFIED')
  })

  test('listens on another address before it closes the previous one, whose streams continue', async t => {
    const gateway = await open()
    const token = await ada.mint()
    const next = await watch(gateway, token)
    const [port, status] = [await freePort(), await freePort()]
    const taken = createServer().listen(0, '127.0.0.1')
    t.after(() => taken.close())
    await once(taken, 'listening')
    const { port: busy } = taken.address() as { port: number }
    gateway.write({ clusters, listen: `127.0.0.1:${busy}` })
    await isStuck(gateway)
    await says(gateway, /listen: cannot listen on .*: in use by another program; set listen to another/)
    assert.equal(await statusOf(gateway, token), 200)
    taken.close()

    gateway.write({ clusters, listen: `127.0.0.1:${port}`, status: `127.0.0.1:${status}` })
    const moved = gateway.at(`https://127.0.0.1:${port}`)
    await eventually('it listens there', () =>
      moved.request('GET', path, { key: token }).then(
        answer => answer.status === 200,
        () => false,
      ),
    )
    await eventually('it left the other', () =>
      gateway.request('GET', path, { key: token }).then(
        () => false,
        () => true,
      ),
    )
    assert.equal(await next(), 'MODIFIED')
    assert.equal(await metric({ ...gateway, status: `http://127.0.0.1:${status}` }, 'gateway_reload_failing'), 0)
  })
})
