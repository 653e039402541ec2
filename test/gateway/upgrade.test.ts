// Connections that become something else: WebSocket and SPDY to a backend made by hand, refused ones, and those that are cut.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { after, afterEach, before, describe, test } from 'node:test'
import { type Bare, eventually, openBare } from '../support/wire.ts'
import { claimsFor, openBackend, openTestGateway, type TestBackend, type TestGateway } from './in-process.ts'

const accept = (key: string) => createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
const exec = '/kubernetes/cluster/prod/api/v1/namespaces/a/pods/p/exec?command=sh'

describe('upgrades', () => {
  let backend: TestBackend
  let gateway: TestGateway
  let upgrade: (request: IncomingMessage, socket: Duplex) => void = () => {}
  const asked: IncomingMessage[] = []
  const open: Bare[] = []
  before(async () => {
    backend = await openBackend()
    backend.server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      asked.push(request)
      socket.on('error', () => {})
      upgrade(request, socket)
      socket.resume().on('end', () => socket.end())
    })
    gateway = await openTestGateway({ backend })
  })
  after(() => gateway.close())
  afterEach(() => {
    for (const one of open.splice(0)) one.socket.destroy()
  })

  async function dial(protocol: string, headers: readonly string[] = [], token?: string, path = exec): Promise<Bare> {
    const bare = await openBare(gateway.url)
    open.push(bare)
    const lines = [
      `GET ${path} HTTP/1.1`,
      'Host: gateway',
      `Authorization: Bearer ${token ?? (await gateway.sign())}`,
      'Connection: Upgrade',
      `Upgrade: ${protocol}`,
      ...headers,
    ]
    bare.socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    return bare
  }
  const echo = (request: IncomingMessage, socket: Duplex) => {
    const key = request.headers['sec-websocket-key']
    socket.write(
      [
        'HTTP/1.1 101 Switching Protocols',
        'Connection: Upgrade',
        `Upgrade: ${request.headers.upgrade}`,
        ...(typeof key === 'string'
          ? [`Sec-WebSocket-Accept: ${accept(key)}`, 'Sec-WebSocket-Protocol: v5.channel.k8s.io']
          : []),
        'X-Stream-Protocol-Version: v4.channel.k8s.io',
        '\r\n',
      ].join('\r\n'),
    )
    socket.pipe(socket)
  }

  test('WebSocket: bytes go both ways, the bearer subprotocol is removed and the cluster sees the identity', async () => {
    upgrade = echo
    const key = Buffer.from('0123456789abcdef').toString('base64')
    const secret = Buffer.from('secret').toString('base64url')
    const bare = await dial('websocket', [
      `Sec-WebSocket-Key: ${key}`,
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.${secret}`,
    ])
    const answer = await bare.until('\r\n\r\n')
    assert.match(answer, /^HTTP\/1.1 101 /)
    assert.ok(answer.includes(`Sec-WebSocket-Accept: ${accept(key)}`), answer)
    const { headers, url } = asked.at(-1) as IncomingMessage
    assert.equal(url, '/api/v1/namespaces/a/pods/p/exec?command=sh')
    assert.equal(headers['sec-websocket-protocol'], 'v5.channel.k8s.io')
    assert.equal(headers.authorization, 'Bearer of-the-gateway')
    assert.equal(headers['impersonate-user'], 'ada')
    assert.ok(!JSON.stringify(headers).includes(secret))
    bare.socket.write('\x81\x05hello')
    assert.ok((await bare.until('hello')).endsWith('\x81\x05hello'))
  })

  test('SPDY: a megabyte comes back unchanged, with slow readers on either side', async () => {
    upgrade = echo
    const bare = await dial('SPDY/3.1', ['X-Stream-Protocol-Version: v4.channel.k8s.io'])
    assert.match(await bare.until('\r\n\r\n'), /101[\s\S]*Upgrade: SPDY\/3.1[\s\S]*X-Stream-Protocol-Version: v4/)
    const big = `${'x'.repeat(1024 * 1024)}END`
    bare.socket.write(big)
    assert.ok((await bare.until('END')).endsWith(big))
  })

  test('bytes sent before the cluster accepted are forwarded afterwards', async () => {
    upgrade = (request, socket) => setImmediate(() => echo(request, socket))
    const bare = await dial('SPDY/3.1')
    bare.socket.write('early')
    assert.match(await bare.until('early'), /\r\n\r\nearly$/)
  })

  test('a rejected upgrade closes the upstream connection; later bytes of the client go nowhere (CVE-2018-1002105)', async () => {
    const heard: string[] = []
    upgrade = (_, socket) => {
      socket.on('data', chunk => heard.push(String(chunk)))
      socket.write(
        'HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{"kind":"Status"}',
      )
    }
    const bare = await dial('websocket')
    const answer = await bare.until('{"kind":"Status"}')
    assert.match(answer, /^HTTP\/1.1 403 /)
    bare.socket.write('GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n')
    await bare.ended()
    await eventually('the connection to the cluster is gone', async () => backend.sockets.size === 0)
    assert.deepEqual(heard, [])
  })

  test('a cluster that answers 200, a redirect, or another protocol has not accepted', async () => {
    for (const [answer, code] of [
      ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 502],
      ['HTTP/1.1 302 Found\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\n\r\n', 502],
      ['HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n', 502],
      ['HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n', 502],
    ] as const) {
      upgrade = (_, socket) => void socket.write(answer)
      const bare = await dial('websocket')
      const text = await bare.ended()
      assert.match(text, new RegExp(`^HTTP/1.1 ${code} `), answer)
      assert.match(text, /cluster prod/)
      assert.ok(!text.includes('evil.test'))
    }
    await eventually('the connections to the cluster are gone', async () => backend.sockets.size === 0)
  })

  test('denied upgrades do not reach the cluster; nor do other protocols and bodies', async () => {
    const before = asked.length
    const narrow = await gateway.sign(
      claimsFor({ 'platform.sh': { kind: 'User', name: 'ada', key: 'k', scope: { clusters: [{ cluster: 'dev' }] } } }),
    )
    assert.match(await (await dial('websocket', [], narrow)).ended(), /^HTTP\/1.1 403 /)
    assert.match(await (await dial('websocket', [], 'no')).ended(), /^HTTP\/1.1 401 /)
    assert.match(await (await dial('h2c')).ended(), /^HTTP\/1.1 400 /)
    assert.match(await (await dial('websocket', ['Content-Length: 5'])).ended(), /^HTTP\/1.1 400 /)
    assert.match(await (await dial('websocket', ['Impersonate-User: root'])).ended(), /^HTTP\/1.1 403 /)
    const missing = exec.replace('prod', 'nowhere')
    assert.match(await (await dial('websocket', [], undefined, missing)).ended(), /^HTTP\/1.1 404 /)
    assert.equal(asked.length, before)
  })

  test('an open connection ends when its token is revoked, and with it the upstream connection', async () => {
    upgrade = echo
    const claims = claimsFor()
    const bare = await dial('websocket', [], await gateway.sign(claims))
    await bare.until('\r\n\r\n')
    const other = await dial('websocket')
    await other.until('\r\n\r\n')
    assert.equal(gateway.streams.open, 2)
    await gateway.revoke({ jti: claims.jti })
    await bare.ended()
    await eventually('one is left', async () => backend.sockets.size === 1 && gateway.streams.open === 1)
    assert.equal(gateway.seen.at(-1)?.code, 101)
    assert.ok(gateway.lines.some(line => line.includes('ResponseStarted') && line.includes(claims.jti)))
    other.socket.destroy()
    await eventually('none is left', async () => backend.sockets.size === 0)
  })

  test('a client that disconnects closes its upstream connection, also during the handshake', async () => {
    upgrade = () => {} // says nothing
    const bare = await dial('websocket')
    await eventually('it was asked', async () => backend.sockets.size === 1)
    bare.socket.destroy()
    await eventually('it is gone', async () => backend.sockets.size === 0)
  })

  /** The upstream sockets of the gateway that are opened meanwhile. */
  async function heldBy(work: () => Promise<void>): Promise<readonly Socket[]> {
    const held: Socket[] = []
    const accepted = channel('net.server.socket')
    const see = (message: unknown) => {
      const { socket } = message as { socket: Socket }
      if (socket.localPort === Number(new URL(gateway.url).port)) held.push(socket)
    }
    accepted.subscribe(see)
    await work().finally(() => accepted.unsubscribe(see))
    return held
  }

  for (const [name, token, answers] of [
    ['without a token', 'no', /^HTTP\/1.1 401 /],
    ['with one that does not count', 'eyJ.bad.bad', /^HTTP\/1.1 401 /],
    ['whom the cluster refuses', undefined, /^HTTP\/1.1 403 /],
  ] as const)
    test(`a client ${name} that sends much and disconnects leaves no connection behind`, async () => {
      upgrade = (_, socket) => void socket.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
      const held = await heldBy(async () => {
        const clients = await Promise.all(Array.from({ length: 10 }, () => dial('SPDY/3.1', [], token)))
        for (const { socket } of clients) socket.write(Buffer.alloc(400_000))
        for (const client of clients) assert.match(await client.until('\r\n\r\n'), answers)
        for (const { socket } of clients) socket.destroy()
      })
      assert.equal(held.length, 10)
      await eventually('they are gone', async () => held.every(socket => socket.destroyed))
    })

  test('a rejected client that never closes its side is disconnected', async () => {
    let bare: Bare | undefined
    const held = await heldBy(async () => {
      bare = await dial('websocket', [], 'no')
      bare.socket.allowHalfOpen = true
      assert.match(await bare.until('\r\n\r\n'), /^HTTP\/1.1 401 /)
    })
    await eventually('it is gone', async () => held.length === 1 && held.every(socket => socket.destroyed))
    assert.equal(bare?.socket.writableEnded, false)
  })

  test('an upgrade ended before the cluster accepted gets the reason, and stays ended when it accepts', async () => {
    let agree: () => void = () => {}
    upgrade = (request, socket) => {
      agree = () => echo(request, socket)
    }
    const claims = claimsFor()
    const before = asked.length
    const bare = await dial('SPDY/3.1', [], await gateway.sign(claims))
    bare.socket.write(Buffer.alloc(400_000))
    await eventually('it was asked', async () => asked.length > before)
    await gateway.revoke({ jti: claims.jti })
    assert.match(await bare.until('\r\n\r\n'), /^HTTP\/1.1 401 /)
    agree()
    assert.doesNotMatch(await bare.ended(), /101 Switching/)
    await eventually('the cluster is left', async () => backend.sockets.size === 0)
  })
})
