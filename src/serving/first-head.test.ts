// The first head of a connection by HTTP/2, as bytes on a real socket: whole, in pieces, too large, late, wrong, or none.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { frame as frameOf } from '../../test/support/http2-frames.ts'
import { makeAuthority } from './certificate.ts'
import { openHeadReader } from './head-frames.ts'
import { type Listener, listenHttps } from './listener.ts'
import { ownCertificate } from './tls.ts'

const KiB = 1024
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const endHeaders = 4
const type = { data: 0, headers: 1, settings: 4, goAway: 7, windowUpdate: 8, continuation: 9 }

const frame = (kind: number, flags: number, stream: number, payload: Buffer | number = 0) =>
  frameOf(kind, flags, stream, typeof payload === 'number' ? Buffer.alloc(payload) : payload)
const settings = frame(type.settings, 0, 0)
/** GET, https, /, and a host: of HPACK's own table, and one that is spelled out. */
const get = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x01, 9]), Buffer.from('localhost')])
const greeting = Buffer.concat([preface, settings, frame(type.windowUpdate, 0, 0, Buffer.from([0, 0, 1, 0]))])
const usual = Buffer.concat([greeting, frame(type.headers, endHeaders | 1, 1, get)])

describe('the first head, by its frames', () => {
  const read = (...frames: readonly Buffer[]) => openHeadReader().read(Buffer.concat([preface, settings, ...frames]))
  const head = (flags: number, length: number) => frame(type.headers, flags, 1, length)
  const rest = (flags: number, length: number) => frame(type.continuation, flags, 1, length)

  test('64 KiB in nine frames are left to the library, one byte or one frame more is too large', () => {
    const three = [head(0, 16 * KiB), rest(0, 16 * KiB), rest(0, 16 * KiB)]
    assert.equal(read(...three, rest(endHeaders, 16 * KiB)), 'seen')
    assert.equal(read(...three, rest(0, 16 * KiB)), 'more')
    assert.equal(read(...three, rest(0, 16 * KiB), rest(endHeaders, 1)), 'too large')
    const eight = Array.from({ length: 7 }, () => rest(0, 10))
    assert.equal(read(head(0, 10), ...eight, rest(endHeaders, 10)), 'seen')
    assert.equal(read(head(0, 10), ...eight, rest(0, 10), rest(endHeaders, 10)), 'too large')
  })

  test('it is known by the head of its frame: what the frame holds is not waited for', () => {
    assert.equal(
      openHeadReader().read(Buffer.concat([preface, settings, head(endHeaders, 100).subarray(0, 9)])),
      'seen',
    )
    assert.equal(
      openHeadReader().read(Buffer.concat([preface, settings, head(endHeaders, 100).subarray(0, 8)])),
      'more',
    )
  })

  test('what is no HTTP/2, or not in its order, is left to the library', () => {
    assert.equal(openHeadReader().read(Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')), 'seen')
    assert.equal(read(head(0, 10), settings), 'seen')
    assert.equal(read(frame(type.headers, 0, 0, 10)), 'seen')
    assert.equal(read(frame(type.headers, 0, 2, 10)), 'seen')
    assert.equal(read(frame(type.data, 0, 1, 17 * KiB)), 'seen')
  })
})

describe('the first head, over sockets', { timeout: 30_000, concurrency: true }, () => {
  const authority = makeAuthority(Date.now())
  const tls = { ca: authority.certificate, servername: 'localhost' }
  const certificate = () => ownCertificate(authority, ['localhost'], Date.now)
  const seen: string[] = []
  let listener: Listener
  before(async () => {
    const at = { host: '127.0.0.1', port: 0, bounds: { headersWithin: 300 } }
    listener = await listenHttps(at, certificate(), ({ headers }, response) => {
      seen.push(headers['x-name'] as string)
      response.end('yes')
    })
  })
  after(() => listener.close(0))

  async function open() {
    const socket = connect({
      ...{ host: '127.0.0.1', port: Number(new URL(listener.url).port), ALPNProtocols: ['h2'], ...tls },
    }).on('error', () => {})
    await once(socket, 'secureConnect')
    const chunks: Buffer[] = []
    socket.on('data', chunk => void chunks.push(chunk))
    return { socket, heard: () => framesOf(Buffer.concat(chunks)) }
  }

  type Frame = { readonly kind: number; readonly stream: number; readonly payload: Buffer }
  function framesOf(bytes: Buffer): Frame[] {
    const frames: Frame[] = []
    for (let at = 0; at + 9 <= bytes.length; ) {
      const length = bytes.readUIntBE(at, 3)
      const payload = bytes.subarray(at + 9, at + 9 + length)
      if (payload.length === length)
        frames.push({ kind: bytes[at + 3] as number, stream: bytes.readUInt32BE(at + 5), payload })
      at += 9 + length
    }
    return frames
  }
  type Opened = { readonly socket: TLSSocket; heard(): Frame[] }
  const textOf = (frames: readonly Frame[]) =>
    frames
      .filter(({ kind }) => kind === type.data)
      .map(({ payload }) => String(payload))
      .join('')
  async function until({ socket, heard }: Opened, wanted: (frames: Frame[]) => boolean): Promise<Frame[]> {
    while (!wanted(heard())) await once(socket, 'data')
    return heard()
  }

  test('one that comes at once, or byte by byte, is a request as any other', async () => {
    for (const pieces of [[usual], Array.from(usual, byte => Buffer.from([byte]))]) {
      const opened = await open()
      for (const piece of pieces) {
        opened.socket.write(piece)
        await new Promise(setImmediate)
      }
      assert.equal(textOf(await until(opened, frames => textOf(frames) !== '')), 'yes')
      opened.socket.destroy()
    }
  })

  test('who waits to hear of us first, before a word or behind a greeting, is spoken to', async () => {
    for (const first of ['', greeting]) {
      const opened = await open()
      if (first) opened.socket.write(first)
      await until(opened, frames => frames.some(({ kind }) => kind === type.settings))
      opened.socket.write(first ? usual.subarray(greeting.length) : usual)
      assert.equal(textOf(await until(opened, frames => textOf(frames) !== '')), 'yes')
      opened.socket.destroy()
    }
  })

  test('one that is too large is 431 on its own stream, and the end of the connection', async () => {
    const { socket, heard } = await open()
    socket.write(greeting)
    for (let count = 0; count < 64; count++)
      socket.write(frame(count === 0 ? type.headers : type.continuation, count === 63 ? endHeaders : 0, 5, 16 * KiB))
    await once(socket, 'end')
    const answer = heard().filter(({ kind }) => kind === type.headers || kind === type.data)
    assert.deepEqual(
      answer.map(({ stream }) => stream),
      [5, 5],
    )
    const { code, reason } = JSON.parse(textOf(answer))
    assert.deepEqual([code, reason], [431, 'RequestHeaderFieldsTooLarge'])
    assert.deepEqual([...(heard().at(-1)?.payload ?? [])], [0, 0, 0, 5, 0, 0, 0, 0])
    socket.destroy()
  })

  test('Node, as a client, reads that answer with all its headers', async () => {
    const session = connectHttp2(listener.url, { ...tls, maxSendHeaderBlockLength: 4 * KiB * KiB })
    session.on('error', () => {})
    const stream = session.request({ ':path': '/', 'x-name': 'A'.repeat(KiB * KiB) }).on('error', () => {})
    const [headers] = await once(stream, 'response')
    let text = ''
    for await (const chunk of stream) text += chunk
    assert.equal(headers[':status'], 431)
    assert.equal(headers['content-type'], 'application/json')
    assert.equal(headers['content-length'], String(text.length))
    assert.match(headers['audit-id'], /^[\w-]{36}$/)
    assert.ok(!seen.some(name => name?.startsWith('AAAA')))
  })

  test('one that never ends is left to the library after its time, and nobody waits for it at the end', async () => {
    const own = await listenHttps(
      { host: '127.0.0.1', port: 0, bounds: { headersWithin: 100 } },
      certificate(),
      () => {},
    )
    const port = Number(new URL(own.url).port)
    const socket = connect({ host: '127.0.0.1', port, ALPNProtocols: ['h2'], ...tls }).on('error', () => {})
    await once(socket, 'secureConnect')
    socket.write(Buffer.concat([greeting, frame(type.headers, 0, 1, get)]))
    await once(socket, 'data') // its settings: the library has it
    await own.close(100)
    await once(socket, 'close')
  })

  test('one that has not come when the listener is closed does not keep it', async () => {
    const own = await listenHttps({ host: '127.0.0.1', port: 0 }, certificate(), () => {})
    const port = Number(new URL(own.url).port)
    const socket = connect({ host: '127.0.0.1', port, ALPNProtocols: ['h2'], ...tls }).on('error', () => {})
    await once(socket, 'secureConnect')
    socket.write(greeting)
    const began = performance.now()
    await Promise.all([own.close(20_000), once(socket.resume(), 'close')])
    assert.ok(performance.now() - began < 15_000)
  })

  test('a connection that goes in the middle of it leaves nothing behind', async () => {
    for (const leave of [(socket: TLSSocket) => socket.destroy(), (socket: TLSSocket) => socket.end()]) {
      const { socket } = await open()
      socket.write(greeting.subarray(0, 30))
      leave(socket)
      await once(socket, 'close')
    }
    const opened = await open()
    opened.socket.write(usual)
    assert.equal(textOf(await until(opened, frames => textOf(frames) !== '')), 'yes')
    opened.socket.destroy()
  })
})
