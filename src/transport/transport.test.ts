// The transport with real sockets: certificates, changing credentials, unreachable and silent servers.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTls, type ServerOptions } from 'node:https'
import { type AddressInfo, connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { ApiError } from '../api/errors.ts'
import { issueCertificate, makeAuthority } from '../serving/certificate.ts'
import type { Access } from './cluster-config.ts'
import { openDial } from './dial.ts'
import { openTransport, type TransportOptions } from './transport.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-kubeconfig-'))
const closing: (() => void)[] = [() => rmSync(directory, { recursive: true })]
after(() => {
  for (const close of closing) close()
})

const now = Date.now()
const authority = makeAuthority(now)
const pair = issueCertificate(authority, ['127.0.0.1'], now)
const usual: Access = { server: '', namespace: 'default', insecure: false, ca: { text: authority.certificate } }

async function listen(handle: RequestListener, tls?: ServerOptions): Promise<string> {
  const server = tls ? createTls(tls, handle) : createServer(handle)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const tls = { cert: pair.certificate, key: pair.key }
const open = (access: Access, over: Partial<TransportOptions> = {}) => {
  const transport = openTransport(access, { env: {}, now: Date.now, ...over })
  closing.push(transport.close)
  return (path = '/', init: RequestInit = {}) => transport.fetch(access.server + path, init)
}
const refused = (code: number, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ApiError, String(error))
  assert.equal(error.code, code)
  assert.match(error.message, message)
  return true
}

test('a server of the CA is reached, with the token; another CA, another name and no CA fail with the reason', async () => {
  const server = await listen((request, response) => response.end(request.headers.authorization), tls)
  assert.equal(await (await open({ ...usual, server, token: 't' })()).text(), 'Bearer t')
  const other = makeAuthority(now).certificate
  await assert.rejects(open({ ...usual, server, ca: { text: other } })(), refused(503, /certificate is not/))
  await assert.rejects(open({ server, namespace: 'x', insecure: false })(), refused(503, /certificate is not trusted/))
  await assert.rejects(
    open({ ...usual, server, serverName: 'other' })(),
    refused(503, /for another host name: use that name, or set tls-server-name/),
  )
  assert.equal((await open({ server, namespace: 'x', insecure: true })()).status, 200)
})

test('a response above the byte limit is aborted, and so is its connection', async () => {
  const gone = Promise.withResolvers<void>()
  const server = await listen((_, response) => {
    const send = () => {
      while (response.write('x'.repeat(16 * 1024)));
    }
    response.on('drain', send).on('close', gone.resolve)
    send()
  })
  const message = /^the response of http:\/\/127\.0\.0\.1:\d+ is larger than 1000 bytes \(.*\/large\)$/
  await assert.rejects(open({ ...usual, server }, { maxBytes: 1000 })('/large'), refused(422, message))
  await gone.promise
  const exact = await listen((_, response) => response.end('x'.repeat(1000)))
  assert.equal((await (await open({ ...usual, server: exact }, { maxBytes: 1000 })()).text()).length, 1000)
})

test('a client certificate is sent to a server that requests one', async () => {
  const name = (request: IncomingMessage) => (request.socket as TLSSocket).getPeerCertificate().subject?.CN ?? ''
  const options = { ...tls, requestCert: true, rejectUnauthorized: false }
  const server = await listen((request, response) => response.end(`${name(request)}`), options)
  const access = { ...usual, server, certificate: { text: pair.certificate }, key: { text: pair.key } }
  assert.notEqual(await (await open(access)()).text(), '')
  assert.equal(await (await open({ ...usual, server })()).text(), '')
})

test('a token file is read again when the server rejects the token', async () => {
  const file = join(directory, 'token')
  writeFileSync(file, 'old\n')
  const seen: (string | undefined)[] = []
  const server = await listen((request, response) => {
    seen.push(request.headers.authorization)
    response.writeHead(request.headers.authorization === 'Bearer new' ? 200 : 401).end()
  })
  const fetch = open({ ...usual, server, tokenFile: file })
  assert.equal((await fetch()).status, 401)
  writeFileSync(file, 'new\n')
  assert.equal((await fetch()).status, 200)
  assert.deepEqual(seen, ['Bearer old', 'Bearer old', 'Bearer old', 'Bearer new'])
})

const plugin = (text: string) => {
  const file = join(directory, `plugin-${Math.random().toString(36).slice(2)}`)
  writeFileSync(file, `#!/bin/sh\n${text}\n`)
  chmodSync(file, 0o755)
  return {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: file,
    args: [],
    env: { WHO: 'me' },
    installHint: 'get it from your admin',
    provideClusterInfo: true,
  }
}
const credential = (status: object) =>
  JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status })

test('an exec plugin runs once, again when its credential expires, and again after a 401', async () => {
  const log = join(directory, 'asked')
  writeFileSync(log, '')
  const expirationTimestamp = new Date(now + 3600_000).toISOString()
  const text = credential({ token: 'from-$WHO', expirationTimestamp }).replaceAll('"', '\\"')
  const exec = plugin(`echo "$KUBERNETES_EXEC_INFO" >> ${log}\necho "${text}"`)
  let code = 200
  const server = await listen((request, response) => response.writeHead(code).end(request.headers.authorization))
  let time = now
  const fetch = open({ ...usual, server, exec }, { env: { PATH: process.env['PATH'] }, now: () => time })
  const asked = () => readFileSync(log, 'utf8').trim().split('\n').filter(Boolean)
  const answers = await Promise.all([fetch(), fetch(), fetch()])
  assert.equal(await answers[0]?.text(), 'Bearer from-me')
  assert.equal(asked().length, 1)
  assert.equal(JSON.parse(asked()[0] ?? '').spec.cluster.server, server)
  time += 3600_000
  await fetch()
  assert.equal(asked().length, 2)
  time -= 3600_000
  code = 401
  assert.equal((await fetch()).status, 401)
  assert.equal(asked().length, 3)
})

test('a missing, failing or invalid exec plugin is reported with the reason, without its output', async () => {
  const server = await listen((_, response) => response.end())
  const missing = { ...plugin(''), command: join(directory, 'nowhere') }
  const cases: [Access['exec'], RegExp][] = [
    [missing, /is not installed: get it from your admin/],
    [plugin('echo out of luck >&2; exit 3'), /exited with 3: out of luck/],
    [plugin('echo hunter2'), /did not print valid JSON/],
    [plugin(`echo '${credential({ other: 'hunter2' })}'`), /neither a token nor a client certificate/],
  ]
  for (const [exec, message] of cases)
    await assert.rejects(open({ ...usual, server, exec: exec as NonNullable<Access['exec']> })(), error => {
      assert.doesNotMatch(String(error), /hunter2/)
      return refused(401, message)(error)
    })
})

test('an unreachable, hanging or silent server is reported, and a request can be aborted', async () => {
  await assert.rejects(open({ ...usual, server: 'http://127.0.0.1:9' })(), refused(503, /connection refused/))
  const hanging = await listen(() => {})
  await assert.rejects(open({ ...usual, server: hanging }, { answerWithin: 50 })(), refused(503, /no response within/))
  const ending = new AbortController()
  const pending = open({ ...usual, server: hanging })('/', { signal: ending.signal })
  ending.abort()
  await assert.rejects(pending, { name: 'AbortError' })
  const quiet = await listen((_, response) => void response.write('a'))
  const watch = await open({ ...usual, server: quiet }, { quietFor: 50 })('/?watch=true')
  await assert.rejects(watch.text())
  await assert.rejects(open({ ...usual, server: quiet }, { quietFor: 50 })(), refused(503, /no data for 0.05 s/))
})

test('requests go through the proxy that the kubeconfig names', async () => {
  const proxy = await listen((request, response) => response.end(`through: ${request.url}`))
  const fetch = open({ ...usual, server: 'http://cluster.example', proxy })
  assert.equal(await (await fetch('/api')).text(), 'through: http://cluster.example/api')
})

/** A proxy that opens tunnels with the right password and relays plain HTTP. */
async function openProxy(password: string) {
  const asked: string[] = []
  const proxy = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers['proxy-authorization']}`)
    response.end('relayed')
  })
  const wanted = `Basic ${Buffer.from(`me:${password}`).toString('base64')}`
  proxy.on('connect', (request, client: Socket) => {
    asked.push(String(request.url))
    if (request.headers['proxy-authorization'] !== wanted) return void client.end('HTTP/1.1 407 No\r\n\r\n')
    const [host, port] = String(request.url).split(':')
    const server = connectTcp(Number(port), host, () => client.write('HTTP/1.1 200 OK\r\n\r\n'))
    server.pipe(client).pipe(server)
    for (const socket of [client, server]) socket.on('error', () => {})
    closing.push(() => server.destroy())
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return { asked, at: `127.0.0.1:${(proxy.address() as AddressInfo).port}`, wanted }
}

test('HTTPS goes through a tunnel of the proxy that the environment names, unless NO_PROXY names the server', async () => {
  const { asked, at } = await openProxy('horse')
  const server = await listen((_, response) => response.end('from the server'), tls)
  const host = new URL(server).host
  const HTTPS_PROXY = `http://me:horse@${at}`
  const fetch = open({ ...usual, server }, { env: { HTTPS_PROXY } })
  for (let round = 0; round < 2; round++) assert.equal(await (await fetch()).text(), 'from the server')
  assert.deepEqual(asked, [host])
  for (const NO_PROXY of ['127.0.0.1', '*'])
    assert.equal((await open({ ...usual, server }, { env: { HTTPS_PROXY, NO_PROXY } })()).status, 200)
  assert.deepEqual(asked, [host])
  const message = /: the proxy rejected the connection with status 407 .*HTTPS_PROXY=http:\/\/USER:PASSWORD@/
  await assert.rejects(open({ ...usual, server }, { env: { https_proxy: at } })(), refused(503, message))
  await assert.rejects(
    open({ ...usual, server, ca: { text: makeAuthority(now).certificate } }, { env: { HTTPS_PROXY } })(),
    refused(503, /certificate is not/),
  )
})

test('plain HTTP goes to the proxy as a whole URL, with the password of the proxy', async () => {
  const { asked, at, wanted } = await openProxy('horse')
  const fetch = open({ ...usual, server: 'http://cluster.example' }, { env: { http_proxy: `http://me:horse@${at}` } })
  assert.equal(await (await fetch('/api')).text(), 'relayed')
  assert.deepEqual(asked, [`http://cluster.example/api ${wanted}`])
})

test('a URL at another server goes there, with the same CA', async () => {
  const [server, other] = [
    await listen((_, response) => response.end('one'), tls),
    await listen((_, response) => response.end('two'), tls),
  ]
  const transport = openTransport({ ...usual, server }, { env: {}, now: Date.now })
  closing.push(transport.close)
  for (const [at, text] of [
    [server, 'one'],
    [other, 'two'],
  ] as const)
    assert.equal(await (await transport.fetch(`${at}/x`, {})).text(), text)
})

test('requests one after the other share a connection', async () => {
  const sockets = new Set<unknown>()
  const server = await listen((request, response) => {
    sockets.add(request.socket)
    response.end('x')
  }, tls)
  const fetch = open({ ...usual, server })
  for (let round = 0; round < 4; round++) assert.equal(await (await fetch()).text(), 'x')
  assert.equal(sockets.size, 1)
})

test('a dial keeps its upstream until the certificate changes, and uses no HTTP/2 behind a proxy', async () => {
  const seen: string[] = []
  const server = await listen(
    (request, response) => {
      seen.push(String((request.socket as TLSSocket).getPeerCertificate()?.serialNumber))
      response.end('ok')
    },
    { ...tls, requestCert: true, rejectUnauthorized: false },
  )
  const [one, two] = [issueCertificate(authority, ['one'], now), issueCertificate(authority, ['two'], now)]
  const [certificate, key] = [join(directory, 'dial.crt'), join(directory, 'dial.key')]
  const put = (pair: typeof one) => {
    writeFileSync(certificate, pair.certificate)
    writeFileSync(key, pair.key)
  }
  put(one)
  let time = now
  const access: Access = { ...usual, server, certificate: { file: certificate }, key: { file: key }, token: 't' }
  const dial = openDial(access, { env: {}, now: () => time })
  closing.push(dial.retire)
  const ask = async () => {
    const { upstream, authorization } = await dial.now()
    assert.equal(authorization, 'Bearer t')
    const text = await new Promise<string>((resolve, reject) => {
      let body = ''
      upstream.send(
        { method: 'GET', path: '/', headers: ['Host', 'x'], connectWithin: 10_000 },
        {
          head: ({ status }) => assert.equal(status, 200),
          data: chunk => {
            body += chunk
          },
          end: () => resolve(body),
          failed: reject,
        },
      )
    })
    assert.equal(text, 'ok')
    return upstream
  }
  const first = await ask()
  time += 5000
  assert.equal(await ask(), first)
  put(two)
  time += 5000
  assert.notEqual(await ask(), first)
  assert.deepEqual(
    seen,
    [one, one, two].map(({ certificate }) => new X509Certificate(certificate).serialNumber),
  )
  const behind = openDial({ ...usual, server, proxy: 'http://127.0.0.1:1' }, { env: {}, now: () => time })
  assert.equal((await behind.now()).connectHttp2, undefined)
  const inProxyLand = openDial({ ...usual, server }, { env: { https_proxy: 'http://127.0.0.1:1' }, now: () => time })
  assert.equal((await inProxyLand.now()).connectHttp2, undefined)
})

test('aborting a request while its response is read is an abort, not an unreachable server', async () => {
  const server = await listen((_, response) => {
    response.writeHead(200, { 'Content-Length': '100' }).write('some of it')
  })
  const ending = new AbortController()
  const begun = channel('undici:request:headers')
  const abort = () => void setImmediate(() => ending.abort())
  begun.subscribe(abort)
  const pending = open({ ...usual, server })('/', { signal: ending.signal })
  await assert.rejects(pending, { name: 'AbortError' }).finally(() => begun.unsubscribe(abort))
})

test('credentials that are rejected during a refresh are not cached', async () => {
  const file = join(directory, 'refused-meanwhile')
  let time = now
  for (let turns = 0; turns < 12; turns++) {
    writeFileSync(file, 'old')
    const dial = openDial({ ...usual, server: 'https://127.0.0.1:1', tokenFile: file }, { env: {}, now: () => time })
    closing.push(dial.retire)
    assert.equal((await dial.now()).authorization, 'Bearer old')
    time += 1001
    const looking = dial.now()
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    writeFileSync(file, 'new')
    dial.refuse()
    await looking
    assert.equal((await dial.now()).authorization, 'Bearer new', `after ${turns} turns`)
  }
})
