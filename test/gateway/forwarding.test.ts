// Streams both ways, and every way a cluster can fail: the answer says which hop it was (D33).

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { openDial } from '../../src/transport/dial.ts'
import { freePort } from '../support/ports.ts'
import { eventually, unchanged } from '../support/wire.ts'
import {
  claimsFor,
  type Options,
  openBackend,
  openTestGateway,
  type TestBackend,
  type TestGateway,
} from './in-process.ts'

type Reply = (request: IncomingMessage, response: ServerResponse) => void
const prod = '/kubernetes/cluster/prod'
const fine: Reply = (_, response) => void response.end('{"fine":true}')

describe('forwarding', () => {
  const timeouts = { answer: 30_000 }
  let reply: Reply = fine
  let backend: TestBackend
  let gateway: TestGateway
  let headers: { [name: string]: string }
  before(async () => {
    backend = await openBackend((request, response) => reply(request, response))
    gateway = await openTestGateway({ backend, timeouts, most: 3 })
    headers = { Authorization: `Bearer ${await gateway.sign()}` }
  })
  after(() => gateway.close())
  afterEach(() => {
    reply = fine
    timeouts.answer = 30_000
  })
  const get = (path: string, init: RequestInit = {}) => fetch(`${gateway.url}${prod}${path}`, { headers, ...init })

  test('a response is streamed, and ends when the cluster ends it', async () => {
    const parts: ServerResponse[] = []
    reply = (_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'X-Kubernetes-Pf': 'a', 'Set-Cookie': 'a=b' })
      response.flushHeaders()
      parts.push(response)
    }
    const answer = await get('/api/v1/pods?watch=true')
    assert.equal(answer.headers.get('x-kubernetes-pf'), 'a')
    assert.equal(answer.headers.get('set-cookie'), null)
    const reader = answer.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
    for (const line of ['{"type":"ADDED"}\n', '{"type":"DELETED"}\n']) {
      parts[0]?.write(line)
      assert.equal(Buffer.from((await reader.read()).value ?? []).toString(), line)
    }
    parts[0]?.end()
    assert.equal((await reader.read()).done, true)
  })

  test('a slow reader pauses the cluster, and the gateway buffers nothing', async () => {
    const chunk = Buffer.alloc(64 * 1024)
    let written = 0
    reply = (_, response) => {
      const push = () => {
        while (written < 64 * 1024 * 1024) {
          written += chunk.length
          if (!response.write(chunk)) return void response.once('drain', push)
        }
        response.end()
      }
      push()
    }
    const { hostname, port } = new URL(gateway.url)
    const call = request({ hostname, port, path: `${prod}/api/v1/pods`, headers, agent: false })
    call.end()
    const [answer] = (await once(call, 'response')) as [IncomingMessage]
    answer.pause()
    await unchanged('the cluster has to wait', () => written)
    assert.ok(written < 32 * 1024 * 1024, `${written} bytes were taken from the cluster`)
    let size = 0
    for await (const part of answer) size += (part as Buffer).length
    assert.equal(size, 64 * 1024 * 1024)
  })

  test('a request body is streamed, with and without a length, also of a DELETE', async () => {
    reply = (request, response) => {
      let size = 0
      request.on('data', (part: Buffer) => {
        size += part.length
      })
      const { method, headers } = request
      request.on('end', () => response.end(JSON.stringify({ size, method, length: headers['content-length'] })))
    }
    const big = Buffer.alloc(5 * 1024 * 1024)
    assert.deepEqual(await (await get('/api/v1/pods', { method: 'POST', body: big })).json(), {
      size: big.length,
      method: 'POST',
      length: String(big.length),
    })
    const stream = new Blob([big]).stream()
    const chunked = await get('/api/v1/pods/x', { method: 'DELETE', body: stream, duplex: 'half' } as RequestInit)
    assert.deepEqual(await chunked.json(), { size: big.length, method: 'DELETE' })
  })

  test('a write without a body says so, and a response of a thousand small chunks has back pressure', async () => {
    reply = (request, response) => {
      response.write('{"length":"')
      response.write(`${request.headers['content-length']}"`)
      for (let count = 0; count < 20_000; count++) response.write(' ')
      response.end('}')
    }
    const warned: Error[] = []
    const listen = (warning: Error) => void warned.push(warning)
    process.on('warning', listen)
    for (const method of ['POST', 'PUT', 'PATCH']) {
      const answer = await get('/api/v1/pods/x/eviction', { method })
      assert.deepEqual(await answer.json(), { length: '0' })
    }
    process.off('warning', listen)
    assert.deepEqual(warned, [])
  })

  test('a client that disconnects ends the upstream request', async () => {
    let closed = false
    reply = (request, response) => {
      response.writeHead(200).flushHeaders()
      request.socket.on('close', () => {
        closed = true
      })
    }
    const ending = new AbortController()
    await get('/api/v1/pods?watch=1', { signal: ending.signal })
    ending.abort()
    await eventually('the cluster hears of it', async () => closed)
  })

  test('a partial response does not look complete', async () => {
    reply = (_, response) => {
      response.writeHead(200)
      response.write('half')
      setImmediate(() => response.socket?.destroy())
    }
    const answer = await get('/api/v1/pods')
    await assert.rejects(answer.text())
  })

  test('a redirect is neither followed nor passed on (CVE-2022-3172); a 304 is', async () => {
    reply = (_, response) => void response.writeHead(302, { Location: 'https://evil.test/' }).end()
    const answer = await get('/api/v1/pods', { redirect: 'manual' })
    assert.equal(answer.status, 502)
    assert.match(await answer.text(), /cluster prod returned a redirect/)
    reply = (_, response) => void response.writeHead(304).end()
    assert.equal((await get('/openapi/v2')).status, 304)
  })

  test('a cluster that rejects the credentials of the gateway is a 502', async () => {
    reply = (_, response) => void response.writeHead(401).end('{}')
    const answer = await get('/api/v1/pods')
    assert.equal(answer.status, 502)
    assert.match(await answer.text(), /cluster prod rejected the credentials of the gateway/)
  })

  test('no response in time is 504; a watch has no such limit', async () => {
    const waiting: ServerResponse[] = []
    reply = (_, response) => void waiting.push(response)
    timeouts.answer = 300
    const late = await get('/api/v1/pods')
    assert.equal(late.status, 504)
    assert.match(await late.text(), /cluster prod did not respond within 0.3 s/)
    const watch = get('/api/v1/pods?watch=true')
    await eventually('the cluster has it', async () => waiting.length === 2)
    await new Promise(resolve => setTimeout(resolve, 400))
    for (const one of waiting) one.end('{}')
    assert.equal((await watch).status, 200)
  })

  test('a connection that breaks before a response is 502 for a write; a read on a reused connection is retried', async () => {
    await (await get('/api/v1/pods')).text() // leaves a connection behind
    let count = 0
    reply = (request, response) => {
      count++
      if (count === 1) request.socket.destroy()
      else response.end('{}')
    }
    assert.equal((await get('/api/v1/pods')).status, 200)
    assert.equal(count, 2)
    reply = request => void request.socket.destroy()
    const answer = await get('/api/v1/pods', { method: 'POST', body: '{}' })
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [502, null])
    assert.match(await answer.text(), /the connection to cluster prod failed .* may have processed the request/)
    reply = fine
    await (await get('/api/v1/pods')).text() // leaves one behind again
    reply = request => void request.socket.destroy()
    const deleted = await get('/api/v1/pods/x', { method: 'DELETE' })
    assert.deepEqual([deleted.status, deleted.headers.get('retry-after')], [502, null])
  })

  test('requests above the inflight limit get 429 with Retry-After', async () => {
    const waiting: ServerResponse[] = []
    reply = (_, response) => void waiting.push(response)
    const under = [1, 2, 3].map(() => get('/api/v1/pods?watch=true'))
    await eventually('three are open', async () => waiting.length === 3)
    const answer = await get('/api/v1/pods?watch=true')
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, '1'])
    for (const one of waiting) one.end()
    await Promise.all(under)
  })

  test('a stream ends when its token expires, and all streams end when the revocation feed is stale', async () => {
    reply = (_, response) => void response.writeHead(200).flushHeaders()
    const now = Math.floor(Date.now() / 1000)
    // With the leeway of five seconds it has four left: on a busy machine one passes before the request.
    const brief = await gateway.sign(claimsFor({ iat: now - 100, nbf: now - 100, exp: now - 1 }))
    const ending = await fetch(`${gateway.url}${prod}/api/v1/pods?watch=1`, {
      headers: { Authorization: `Bearer ${brief}` },
    })
    assert.equal(ending.status, 200)
    await assert.rejects(ending.text())
    const other = await get('/api/v1/pods?watch=1')
    gateway.feedAge = 901_000
    await assert.rejects(other.text())
    const refused = await get('/api/v1/pods')
    assert.equal(refused.status, 503)
    assert.match(await refused.text(), /no contact with the management API/)
    gateway.feedAge = 0
    reply = fine
    assert.equal((await get('/api/v1/pods')).status, 200)
  })

  test('users and groups can be revoked like keys, and only earlier tokens are affected', async () => {
    const now = Math.floor(Date.now() / 1000)
    const bearer = async (over: object) => ({
      headers: { Authorization: `Bearer ${await gateway.sign(claimsFor(over))}` },
    })
    const [bob, eve] = [
      await bearer({ sub: 'bob', iat: now - 5 }),
      await bearer({ sub: 'eve', groups: ['gone'], iat: now - 5 }),
    ]
    for (const one of [bob, eve]) assert.equal((await get('/api', one)).status, 200)
    await gateway.revoke({ users: ['bob'] })
    await gateway.revoke({ groups: ['gone'] })
    await eventually(
      'both are refused',
      async () => (await get('/api', bob)).status + (await get('/api', eve)).status === 802,
    )
    const rejected = gateway.lines.map(line => JSON.parse(line)).findLast(event => event.responseStatus?.code === 401)
    assert.deepEqual(rejected.user, {})
    assert.equal(rejected.annotations['platform.sh/rejected-user'], 'eve')
    assert.ok(rejected.annotations['platform.sh/token'])
    const later = await bearer({ sub: 'bob', iat: now + 30, nbf: now })
    assert.equal((await get('/api', later)).status, 200)
  })

  test('the audit log names the user of an expired token, if its signature is valid', async () => {
    const now = Math.floor(Date.now() / 1000)
    const { 'platform.sh': holder } = claimsFor()
    const expired = {
      sub: 'old',
      iat: now - 600,
      nbf: now - 600,
      exp: now - 300,
      'platform.sh': { ...holder, key: 'key-8' },
    }
    const rejectedWith = async (token: string) => {
      assert.equal((await get('/api', { headers: { Authorization: `Bearer ${token}` } })).status, 401)
      return gateway.lines.map(line => JSON.parse(line)).findLast(event => event.responseStatus?.code === 401)
    }
    const token = await gateway.sign(claimsFor(expired))
    const { user, annotations, responseStatus } = await rejectedWith(token)
    assert.deepEqual(user, {})
    assert.equal(annotations['platform.sh/rejected-user'], 'old')
    assert.equal(annotations['platform.sh/access-key-uid'], 'key-8')
    assert.ok(annotations['platform.sh/token'])
    assert.equal(responseStatus.message, 'the token has expired')
    const other = await gateway.sign(claimsFor({ ...expired, sub: 'mallory' }))
    const forged = [...other.split('.').slice(0, 2), token.split('.')[2]].join('.')
    const unsigned = await rejectedWith(forged)
    assert.deepEqual(unsigned.user, {})
    assert.doesNotMatch(JSON.stringify(unsigned), /mallory|key-8/)
    const unknown = await gateway.sign(claimsFor({ ...expired, sub: 'mallory' }), { kid: 'gone' })
    assert.doesNotMatch(JSON.stringify(await rejectedWith(unknown)), /mallory|key-8/)
  })

  test('the audit log has token, key and target of allowed and denied requests', async () => {
    const claims = claimsFor({
      'platform.sh': { kind: 'User', name: 'ada', key: 'key-7', scope: { clusters: [{ cluster: 'prod' }] } },
    })
    const bearer = { headers: { Authorization: `Bearer ${await gateway.sign(claims)}` } }
    await (await get('/api/v1/pods/x', { method: 'DELETE', ...bearer })).text()
    await fetch(`${gateway.url}/kubernetes/cluster/dev/api`, bearer)
    const found = gateway.lines
      .map(line => JSON.parse(line))
      .filter(line => line.annotations?.['platform.sh/token'] === claims.jti)
    assert.deepEqual(
      found.map(({ verb, annotations, responseStatus }) => [
        verb,
        annotations['platform.sh/place'],
        responseStatus.code,
      ]),
      [
        ['delete', 'cluster prod', 200],
        ['get', 'cluster dev', 403],
      ],
    )
    assert.equal(found[0].annotations['platform.sh/access-key-uid'], 'key-7')
    assert.ok(gateway.used.includes('key-7'))
  })
})

test('an unreachable cluster is 503 with Retry-After, an untrusted certificate a 502 with the reason', async t => {
  const port = await freePort()
  const mine = makeAuthority(Date.now())
  const other = makeAuthority(Date.now())
  const pair = issueCertificate(mine, ['127.0.0.1'], Date.now())
  const secure = createHttps({ cert: pair.certificate, key: pair.key }, (_, response) => void response.end('{}'))
  secure.listen(0, '127.0.0.1')
  t.after(() => {
    secure.closeAllConnections()
    secure.close()
  })
  await once(secure, 'listening')
  const at = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`
  const dial = (server: string, ca: string) => ({
    dial: openDial({ server, namespace: '', insecure: false, ca: { text: ca } }, { env: {}, now: Date.now }),
  })
  const cases: [Pick<Options, 'server' | 'dial'>, number, RegExp][] = [
    [dial(`http://127.0.0.1:${port}`, ''), 503, /cluster prod is unreachable: connection refused/],
    [dial(at, other.certificate), 502, /the TLS handshake with cluster prod failed: its certificate is not trusted/],
    [
      dial(at.replace('127.0.0.1', 'localhost'), mine.certificate),
      502,
      /handshake with cluster prod failed: .*for another host name/,
    ],
    [dial(at, mine.certificate), 200, /{}/],
  ]
  for (const [over, code, words] of cases) {
    const gateway = await openTestGateway({ backend: await openBackend(), ...over })
    t.after(() => gateway.close())
    const Authorization = `Bearer ${await gateway.sign()}`
    const answer = await fetch(`${gateway.url}${prod}/api`, { headers: { Authorization } })
    assert.equal(answer.status, code)
    assert.match(await answer.text(), words)
    if (code === 503) assert.equal(answer.headers.get('retry-after'), '1')
  }
})

test('an ambiguous response is 502, and nothing of it reaches the client', async t => {
  let bytes = ''
  const raw = createTcp(socket => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write(bytes))
  })
  raw.listen(0, '127.0.0.1')
  t.after(() => raw.close())
  await once(raw, 'listening')
  const server = `http://127.0.0.1:${(raw.address() as AddressInfo).port}`
  const gateway = await openTestGateway({ backend: await openBackend(), server })
  t.after(() => gateway.close())
  const Authorization = `Bearer ${await gateway.sign()}`
  for (const lines of [
    ['HTTP/1.1 200 OK', 'Content-Length: 5', 'Content-Length: 6', '', 'evil!'],
    ['HTTP/1.1 200 OK', 'Content-Length: 4', 'Transfer-Encoding: chunked', '', '0', '', ''],
    ['HTTP/1.1 200 OK', 'X: evil\rY: z', 'Content-Length: 0', '', ''],
    ['HTTP/1.1 101 Switching Protocols', 'Upgrade: evil', '', ''],
    ['SSH-2.0-evil', '', ''],
  ]) {
    bytes = lines.join('\r\n')
    const answer = await fetch(`${gateway.url}${prod}/api`, { headers: { Authorization } })
    const text = await answer.text()
    assert.equal(answer.status, 502, text)
    assert.match(text, /the connection to cluster prod failed before it responded/)
    assert.ok(!text.includes('evil') && !answer.headers.has('x'))
  }
})

test('HTTP/2 clients are served too: reads, bodies of unknown length, and aborted streams', async t => {
  const pair = issueCertificate(makeAuthority(Date.now()), ['127.0.0.1'], Date.now())
  const backend = await openBackend((request, response) => {
    if (request.url?.includes('watch')) return void response.writeHead(200).flushHeaders()
    let size = 0
    request.on('data', (part: Buffer) => {
      size += part.length
    })
    request.on('end', () => response.end(JSON.stringify({ size })))
  })
  const certificates = { current: pair, follow: () => {}, stop: () => {} }
  const gateway = await openTestGateway({ backend, certificates })
  const session = connectHttp2(gateway.url, { rejectUnauthorized: false })
  t.after(() => {
    session.destroy()
    return gateway.close()
  })
  const claims = claimsFor()
  const authorization = `Bearer ${await gateway.sign(claims)}`
  const call = (path: string, method: string, body?: Buffer) => {
    const stream = session.request(
      { ':path': `${prod}${path}`, ':method': method, authorization },
      { endStream: false },
    )
    stream.end(body)
    return stream
  }
  for (const [method, body, size] of [
    ['GET', undefined, 0],
    ['POST', Buffer.alloc(200_000), 200_000],
    ['DELETE', Buffer.alloc(10), 10],
  ] as const) {
    const stream = call('/api/v1/pods', method, body)
    let text = ''
    for await (const part of stream) text += part
    assert.deepEqual(JSON.parse(text), { size }, method)
  }
  const watch = call('/api/v1/pods?watch=1', 'GET')
  watch.on('error', () => {})
  await once(watch, 'response')
  const closed = new Promise(resolve => watch.on('close', resolve))
  await gateway.revoke({ jti: claims.jti })
  await closed
  assert.notEqual(watch.rstCode, 0, 'what is cut does not look whole')
})

test('a read is retried once on a new connection when all kept connections are dead', async () => {
  const held: ServerResponse[] = []
  const used = new Set<unknown>()
  const backend = await openBackend((request, response) => {
    if (used.has(request.socket)) return void request.socket.destroy()
    used.add(request.socket)
    if (used.size > 3) return void response.end('{}')
    held.push(response)
    if (held.length === 3) for (const one of held) one.end('{}')
  })
  const gateway = await openTestGateway({ backend })
  const headers = { Authorization: `Bearer ${await gateway.sign()}` }
  const get = async () => {
    const answer = await fetch(`${gateway.url}${prod}/api`, { headers })
    return [answer.status, await answer.text()]
  }
  try {
    assert.deepEqual(await Promise.all([get(), get(), get()]), Array(3).fill([200, '{}']))
    assert.deepEqual(await get(), [200, '{}'])
    assert.equal(backend.got.length, 5)
  } finally {
    await gateway.close()
  }
})

test('a cluster behind a proxy gets every header and the body, and a watch gets its own connection', async () => {
  const bodies: string[] = []
  const backend = await openBackend((request, response) => {
    let body = ''
    request.on('data', part => {
      body += part
    })
    request.on('end', () => {
      bodies.push(body)
      response.end('{}')
    })
  })
  const server = 'http://cluster.example'
  const access = { server, namespace: '', insecure: false, proxy: backend.url }
  const gateway = await openTestGateway({ backend, server, dial: openDial(access, { env: {}, now: Date.now }) })
  const headers = { Authorization: `Bearer ${await gateway.sign()}` }
  try {
    for (const [path, init] of [
      ['/api/v1/pods', { method: 'POST', body: 'a body' }],
      ['/api/v1/pods?watch=true', {}],
    ] as const)
      assert.equal((await fetch(`${gateway.url}${prod}${path}`, { headers, ...init })).status, 200)
    assert.deepEqual(bodies, ['a body', ''])
    assert.deepEqual(
      backend.got.map(({ url }) => url),
      [`${server}/api/v1/pods`, `${server}/api/v1/pods?watch=true`],
    )
    for (const { headersDistinct } of backend.got) {
      assert.deepEqual(headersDistinct.host, ['cluster.example'])
      assert.ok((headersDistinct['impersonate-group']?.length ?? 0) > 1, 'every group is there')
    }
  } finally {
    await gateway.close()
  }
})
