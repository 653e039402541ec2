// Listeners with real sockets: the limits for broken, slow, idle and half-closed clients (D1).

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { createConnection, type Socket } from 'node:net'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { makeAuthority } from './certificate.ts'
import type { Response } from './exchange.ts'
import { type Bounds, type Handle, type Listener, listenHttp, listenHttps } from './listener.ts'
import { ownCertificate } from './tls.ts'

const authority = makeAuthority(Date.now())
const https = (handle: Handle, bounds: Partial<Bounds> = {}) =>
  listenHttps(
    { host: '127.0.0.1', port: 0, bounds },
    ownCertificate(authority, ['localhost', '127.0.0.1'], Date.now),
    handle,
  )
const http = (handle: Handle, bounds: Partial<Bounds> = {}) =>
  listenHttp({ host: '127.0.0.1', port: 0, bounds }, handle)
const tls = { ca: authority.certificate, servername: 'localhost' }
const at = ({ url }: Listener) => ({ host: '127.0.0.1', port: Number(new URL(url).port) })

/** A client that never closes its side, and the data it has read. */
async function openHalf(listener: Listener) {
  const isTls = listener.url.startsWith('https:')
  const options = { ...at(listener), allowHalfOpen: true }
  const socket: Socket = isTls ? connectTls({ ...options, ...tls }) : createConnection(options)
  await once(socket, isTls ? 'secureConnect' : 'connect')
  let text = ''
  socket.on('error', () => {})
  socket.on('data', chunk => {
    text += chunk
  })
  return { socket, end: () => once(socket, 'end').then(() => text) }
}

/** Writing to a closed connection fails. A socket that the other side has only shut down still accepts data. */
async function isCut(socket: Socket): Promise<boolean> {
  for (let n = 0; n < 3000 && !socket.destroyed; n++) {
    socket.write('x')
    await wait(10)
  }
  return socket.destroyed
}

function refused(text: string, code: number, reason: string): void {
  const [head = '', body = ''] = text.split('\r\n\r\n')
  assert.match(head, new RegExp(`^HTTP/1\\.1 ${code} \\w`))
  assert.match(head, /^Audit-Id: [\w-]{36}$/m)
  assert.match(head, /^Content-Type: application\/json$/m)
  assert.match(head, new RegExp(`^Content-Length: ${Buffer.byteLength(body)}$`, 'm'))
  const status = JSON.parse(body)
  assert.deepEqual([status.kind, status.status, status.code, status.reason], ['Status', 'Failure', code, reason])
}

for (const [scheme, listen] of [
  ['http', http],
  ['https', https],
] as const)
  describe(`listener: ${scheme}`, { timeout: 120_000, concurrency: true }, () => {
    let listener: Listener
    let hasty: Listener
    before(async () => {
      listener = await listen(() => {})
      hasty = await listen(() => {}, { headersWithin: 300, requestWithin: 600 })
    })
    after(() => Promise.all([listener, hasty].map(one => one.close(0))))

    test('invalid HTTP is a 400, and the connection is closed even if the client keeps its side open', async () => {
      const { socket, end } = await openHalf(listener)
      const text = end()
      socket.write('this is not HTTP\r\n\r\n')
      refused(await text, 400, 'BadRequest')
      assert.ok(await isCut(socket))
    })

    test('headers above the limit are a 431', async () => {
      const { socket, end } = await openHalf(listener)
      const text = end()
      socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(100_000)}`)
      refused(await text, 431, 'RequestHeaderFieldsTooLarge')
      assert.ok(await isCut(socket))
    })

    test('headers that do not arrive in time are a 408', async () => {
      const { socket, end } = await openHalf(hasty)
      const text = end()
      socket.write('GET / HTTP/1.1\r\nHost: loc')
      refused(await text, 408, 'RequestTimeout')
      assert.ok(await isCut(socket))
    })

    describe('garbage behind valid requests', () => {
      const get = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
      const garbage = 'garbage\r\n\r\n'
      const refusal = '{"kind":"Status"'

      /** A listener whose responses the test ends, in the order of their requests. */
      async function holding(context: TestContext) {
        const responses: Response[] = []
        const arrived = new EventEmitter()
        const own = await listen((request, response) => {
          request.on('error', () => {})
          responses.push(response)
          arrived.emit('request')
        })
        context.after(() => own.close(0))
        const requests = async (count: number) => {
          while (responses.length < count) await once(arrived, 'request')
          return responses
        }
        return { ...(await openHalf(own)), requests }
      }
      /** The bodies of all responses: "one", "two", and the refusal. */
      const bodiesOf = (text: string) => text.split(/HTTP\/1\.1 \d{3} /).flatMap(one => one.split('\r\n\r\n')[1] ?? [])

      test('they are answered first, whichever ends first', async context => {
        const { socket, end, requests } = await holding(context)
        const text = end()
        socket.write(get + get + garbage)
        const [one, two] = await requests(2)
        two?.writeHead(200, { 'content-length': 3 }).end('two')
        one?.writeHead(200, { 'content-length': 3 }).end('one')
        const bodies = bodiesOf(await text)
        assert.deepEqual(bodies.slice(0, 2), ['one', 'two'])
        assert.ok(bodies[2]?.startsWith(refusal), bodies[2])
        assert.equal(bodies.length, 3)
        assert.ok(await isCut(socket))
      })

      test('a response that has begun is completed first', async context => {
        const { socket, end, requests } = await holding(context)
        const text = end()
        socket.write(get)
        const [one] = await requests(1)
        one?.writeHead(200, { 'content-length': 6 }).write('one')
        await once(socket, 'data')
        for (const _ of [1, 2]) {
          const before = one?.req.socket.bytesRead ?? 0
          socket.write(garbage)
          while (!one?.destroyed && (one?.req.socket.bytesRead ?? 0) <= before) await wait(1)
        }
        one?.end('end')
        const bodies = bodiesOf(await text)
        assert.equal(bodies[0], 'oneend')
        assert.ok(bodies[1]?.startsWith(refusal), bodies[1])
        assert.ok(await isCut(socket))
      })

      test('a broken body is refused after the response to the request before it', async context => {
        const { socket, end, requests } = await holding(context)
        const text = end()
        socket.write(`${get}POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n`)
        const [one] = await requests(2)
        one?.writeHead(200, { 'content-length': 3 }).end('one')
        const bodies = bodiesOf(await text)
        assert.equal(bodies[0], 'one')
        assert.ok(bodies[1]?.startsWith(refusal), bodies[1])
        assert.equal(bodies.length, 2)
        assert.ok(await isCut(socket))
      })

      test('a connection that ends with a response gets nothing after it', async context => {
        const { socket, end, requests } = await holding(context)
        const text = end()
        socket.write(get + garbage)
        const [one] = await requests(1)
        one?.writeHead(200, { 'content-length': 3, connection: 'close' }).end('one')
        assert.deepEqual(bodiesOf(await text), ['one'])
      })
    })

    test('the last response reaches a client that still sends; a client that never stops is cut off', async context => {
      let isTold = false
      const handle: Handle = (request, response) => {
        request
          .on('error', () => {})
          .on('close', () => {
            isTold = true
          })
        response.writeHead(401, { connection: 'close' }).end('no')
      }
      const own = await listen(handle, { linger: 1000 })
      context.after(() => own.close(0))
      const { socket, end } = await openHalf(own)
      const text = end()
      socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n')
      assert.match(await text, /^HTTP\/1\.1 401 .*\r\nno\r\n/s)
      assert.ok(await isCut(socket))
      assert.ok(isTold, 'nobody waits for the rest of the body')
    })

    test('a connection that is kept for many bodies references only the newest', async context => {
      const ways = new Set<unknown>()
      const own = await listen((request, response) => {
        ways.add(request.socket.destroySoon)
        request.resume().on('end', () => response.end('yes'))
      })
      context.after(() => own.close(0))
      const { socket } = await openHalf(own)
      for (let count = 0; count < 5; count++) {
        socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
        await once(socket, 'data')
      }
      assert.equal(ways.size, 1)
      socket.destroy()
    })

    test('a large body behind an unread response arrives complete', async context => {
      const answer = Buffer.alloc(4_000_000, 'a')
      const own = await listen((request, response) => {
        if (request.method === 'GET') return void response.end(answer)
        let size = 0
        request.on('data', (chunk: Buffer) => {
          size += chunk.length
        })
        request.on('end', () => response.writeHead(200, { connection: 'close' }).end(`received ${size}`))
      })
      context.after(() => own.close(0))
      const { socket, end } = await openHalf(own)
      const body = 'b'.repeat(400_000)
      socket.pause() // the response does not fit into the buffers of both sides
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
      socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      const text = end()
      socket.resume()
      assert.match((await text).slice(-200), /received 400000/)
      socket.destroy()
    })

    test('data after the last request of a connection is not a request', async context => {
      const seen: string[] = []
      const own = await listen((request, response) => {
        seen.push(request.url ?? '')
        response.writeHead(401, { connection: 'close' }).end('no')
      })
      context.after(() => own.close(0))
      const { socket, end } = await openHalf(own)
      const text = end()
      socket.write('POST /first HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345')
      await text
      socket.write('67890DELETE /second HTTP/1.1\r\nHost: localhost\r\n\r\n')
      assert.ok(await isCut(socket))
      assert.deepEqual(seen, ['/first'])
    })

    test('close ends the remaining connections at its deadline: silent, half-open, half a request', async () => {
      const requests: string[] = []
      const arrived = Promise.withResolvers<void>()
      const own = await listen(({ method = '' }) => {
        if (requests.push(method) === 2) arrived.resolve()
      })
      const silent = createConnection(at(own)).on('error', () => {})
      await once(silent, 'connect')
      const { socket: idle } = await openHalf(own)
      const { socket: half } = await openHalf(own)
      half.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhal')
      const { socket: gone } = await openHalf(own)
      gone.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
      gone.end()
      await arrived.promise
      // The requests never get a response, so only the deadline closes their connections.
      await own.close(200)
      for (const socket of [silent, idle, half, gone]) socket.destroy()
    })
  })

test('an HTTP/2 session without streams is closed after a while; one with a quiet stream is not', async context => {
  const listener = await https((_, response) => void response.write('begun'), { keepAlive: 150 })
  context.after(() => listener.close(0))
  const [idle, busy] = [connectHttp2(listener.url, tls), connectHttp2(listener.url, tls)]
  for (const session of [idle, busy]) session.on('error', () => {})
  const stream = busy.request({ ':path': '/' })
  stream.on('error', () => {})
  await once(stream, 'data')
  await once(idle, 'close')
  const younger = connectHttp2(listener.url, tls).on('error', () => {})
  await once(younger, 'close')
  assert.equal(busy.closed || busy.destroyed, false)
  stream.close()
  await once(busy, 'close')
})

test('an address in use leaves nothing behind: no certificate is followed for it', async () => {
  const taken = await http(() => {})
  const source = ownCertificate(authority, ['localhost'], Date.now)
  let following = 0
  const certificates = {
    current: source.current,
    follow: () => void following++,
    stop: () => void following--,
  }
  await assert.rejects(
    listenHttps(at(taken), certificates, () => {}),
    /EADDRINUSE/,
  )
  assert.equal(following, 0)
  await assert.rejects(
    listenHttp(at(taken), () => {}),
    /EADDRINUSE/,
  )
  source.stop()
  await taken.close(0)
})
