// Streams that a cluster did not process: it refused them, or sent a GOAWAY that excludes them. The gateway retries them a limited number of times.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { constants, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { createServer as createTls, type TLSSocket } from 'node:tls'
import { frame } from '../support/http2-frames.ts'
import { closing, openBefore, openCluster, tls, until, watch } from './http2-cluster.ts'

const { NGHTTP2_REFUSED_STREAM, NGHTTP2_NO_ERROR, NGHTTP2_ENHANCE_YOUR_CALM } = constants

function goaway(last: number, code: number): Buffer {
  const body = Buffer.alloc(8)
  body.writeUInt32BE(last, 0)
  body.writeUInt32BE(code, 4)
  return frame(7, 0, 0, body)
}

const none = Buffer.alloc(0)
const settings = frame(4, 0, 0, none)
const answer = (stream: number) =>
  Buffer.concat([frame(1, 4, stream, Buffer.from([0x88])), frame(0, 1, stream, Buffer.from('fine'))])

/** A cluster of handmade HTTP/2 frames. `asked`: called with each request head and the number of its connection, from 1. */
async function openByHand(asked: (socket: TLSSocket, stream: number, connection: number) => void, protocols = ['h2']) {
  let connections = 0
  let heads = 0
  const sockets: TLSSocket[] = []
  const server = createTls({ ...tls, ALPNProtocols: protocols }, socket => {
    const number = ++connections
    sockets.push(socket)
    socket.on('error', () => {}).write(settings)
    let got = none
    let at = 24 // behind the preface
    socket.on('data', chunk => {
      got = Buffer.concat([got, chunk])
      for (; at + 9 <= got.length; at += 9 + got.readUIntBE(at, 3))
        if (got.readUInt8(at + 3) === 1) {
          heads++
          asked(socket, got.readUInt32BE(at + 5), number)
        }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const seen = {
    get connections() {
      return connections
    },
    get heads() {
      return heads
    },
  }
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

describe('a stream that the cluster did not process', { timeout: 120_000 }, () => {
  test('is retried when it is refused twice', async () => {
    let refused = 0
    const cluster = await openCluster({}, ({ response }) => {
      if (refused++ < 2) return void response.stream.close(NGHTTP2_REFUSED_STREAM)
      response.end('fine')
    })
    const seen = await watch(await openBefore(cluster.url))
    await until('it is whole', () => seen.end === 'whole')
    assert.deepEqual([seen.status, seen.text, refused], [200, 'fine', 3])
  })

  for (const [what, code] of [
    ['a goodbye', NGHTTP2_NO_ERROR],
    ['an angry goodbye', NGHTTP2_ENHANCE_YOUR_CALM],
  ] as const)
    test(`is retried if ${what} follows the settings, on one connection after the other`, async () => {
      const { url, seen } = await openByHand((socket, stream, connection) => {
        if (connection > 2) return void socket.write(answer(stream))
        socket.end(goaway(0, code))
      })
      const watched = await watch(await openBefore(url))
      await until('it has ended', () => watched.end !== 'open')
      assert.deepEqual([watched.status, watched.text, watched.end], [200, 'fine', 'whole'])
      assert.deepEqual([seen.connections, seen.heads], [3, 3])
    })

  test('uses HTTP/1.1 after repeated refusals', async () => {
    const versions: number[] = []
    const cluster = await openCluster({}, ({ request, response }) => {
      versions.push(request.httpVersionMajor)
      const { stream } = response as Http2ServerResponse & { stream?: Http2ServerResponse['stream'] }
      if (request.httpVersionMajor === 2) return void stream?.close(NGHTTP2_REFUSED_STREAM)
      response.end('fine')
    })
    const seen = await watch(await openBefore(cluster.url))
    await until('it is whole', () => seen.end === 'whole')
    assert.deepEqual([seen.status, seen.text, versions], [200, 'fine', [2, 2, 2, 1]])
  })

  test('uses HTTP/1.1 if the cluster requires it', async () => {
    const cluster = await openCluster({}, ({ request, response }) => {
      const { stream } = response as Http2ServerResponse & { stream?: Http2ServerResponse['stream'] }
      if (request.httpVersionMajor === 2) return void stream?.close(constants.NGHTTP2_HTTP_1_1_REQUIRED)
      response.end('fine')
    })
    const seen = await watch(await openBefore(cluster.url))
    await until('it is whole', () => seen.end === 'whole')
    assert.deepEqual([seen.status, seen.text], [200, 'fine'])
  })

  test('finally gets 503 with Retry-After, and the retries end', async () => {
    const { url, seen } = await openByHand(socket => void socket.end(goaway(0, NGHTTP2_NO_ERROR)))
    const watched = await watch(await openBefore(url))
    await until('it has ended', () => watched.end === 'whole')
    assert.deepEqual([watched.status, watched.answer.headers['retry-after']], [503, '1'])
    assert.match(
      watched.text,
      /cluster prod rejected the request without processing it: it is overloaded or shutting down/,
    )
    assert.equal(seen.heads, 3)
    assert.equal(seen.connections, 3, 'and one more that could not agree on HTTP/1.1')
  })

  test('many of them need few new connections, and all succeed', async () => {
    const { url, seen } = await openByHand((socket, stream, connection) => {
      if (connection === 1) {
        if (seen.heads === 20) socket.end(goaway(0, NGHTTP2_NO_ERROR))
      } else socket.write(answer(stream))
    })
    const gateway = await openBefore(url)
    const all = await Promise.all(Array.from({ length: 20 }, () => watch(gateway)))
    await until('all have ended', () => all.every(({ end }) => end !== 'open'))
    assert.ok(all.every(({ status, text }) => status === 200 && text === 'fine'))
    assert.equal(seen.heads, 40)
    assert.ok(seen.connections <= 3, `${seen.connections} connections`)
  })

  test('is retried on another connection than the one that refused it, which gets nothing new', async () => {
    let isFull = false
    const asked: { session: unknown; refused: boolean }[] = []
    const cluster = await openCluster({}, ({ response }) => {
      const { stream } = response
      const refused = isFull && stream.session === asked[0]?.session
      asked.push({ session: stream.session, refused })
      if (refused) return void stream.close(NGHTTP2_REFUSED_STREAM)
      response.write('first')
    })
    const gateway = await openBefore(cluster.url)
    const first = await watch(gateway)
    await until('the first is there', () => first.text === 'first')
    isFull = true
    const others = [await watch(gateway), await watch(gateway)]
    await until('they are there', () => others.every(({ text }) => text === 'first'))
    assert.deepEqual(
      asked.map(({ refused }) => refused),
      [false, true, false, false],
    )
    assert.equal(new Set(asked.map(({ session }) => session)).size, 2)
    assert.equal(first.end, 'open')
  })

  test('a processed stream is not retried: 502 with the reason', async () => {
    const { url, seen } = await openByHand(
      (socket, stream) => void socket.end(goaway(stream, NGHTTP2_ENHANCE_YOUR_CALM)),
    )
    const watched = await watch(await openBefore(url))
    await until('it has ended', () => watched.end === 'whole')
    assert.equal(watched.status, 502)
    assert.match(watched.text, /the connection to cluster prod failed before it responded/)
    assert.equal(seen.heads, 1)
  })
})

const reset = (stream: number, code: number) => frame(3, 0, stream, Buffer.from([0, 0, 0, code]))

describe('a stream that the cluster resets', { timeout: 120_000 }, () => {
  for (const code of [NGHTTP2_NO_ERROR, constants.NGHTTP2_INTERNAL_ERROR, constants.NGHTTP2_CANCEL]) {
    test(`before its response is 502, also with code ${code}`, async () => {
      const { url } = await openByHand((socket, stream) => void socket.write(reset(stream, code)))
      const watched = await watch(await openBefore(url))
      await until('it has ended', () => watched.end === 'whole')
      assert.equal(watched.status, 502)
      assert.match(watched.text, /the connection to cluster prod failed before it responded/)
    })

    test(`in the middle of a response aborts it, also with code ${code}`, async () => {
      const { url } = await openByHand((socket, stream) => {
        socket.write(
          Buffer.concat([frame(1, 4, stream, Buffer.from([0x88])), frame(0, 0, stream, Buffer.from('half'))]),
        )
        setImmediate(() => socket.write(reset(stream, code)))
      })
      const watched = await watch(await openBefore(url))
      await until('it has ended', () => watched.end !== 'open')
      assert.equal(watched.end, 'broken')
    })
  }

  test('after its end is complete', async () => {
    const { url } = await openByHand(
      (socket, stream) => void socket.write(Buffer.concat([answer(stream), reset(stream, NGHTTP2_NO_ERROR)])),
    )
    const watched = await watch(await openBefore(url))
    await until('it has ended', () => watched.end !== 'open')
    assert.deepEqual([watched.status, watched.text, watched.end], [200, 'fine', 'whole'])
  })
})
