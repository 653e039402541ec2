// Headers that are larger than anybody needs, over HTTP/2 above all: what is answered, what ends a stream, and what ends a connection.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, connect, constants, type OutgoingHttpHeaders } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { eventually } from '../support/wire.ts'
import { openBackend, openTestGateway, type TestGateway } from './in-process.ts'

const path = '/kubernetes/cluster/prod/api/v1/pods'
const KiB = 1024

describe('large headers', { timeout: 120_000 }, () => {
  let gateway: TestGateway
  let good: string
  const sessions: ClientHttp2Session[] = []
  before(async () => {
    const pair = issueCertificate(makeAuthority(Date.now()), ['127.0.0.1'], Date.now())
    const backend = await openBackend(({ url }, response) => {
      response.write('first\n')
      if (!url?.includes('watch')) response.end()
    })
    gateway = await openTestGateway({ backend, certificates: { current: pair, follow: () => {}, stop: () => {} } })
    good = `Bearer ${await gateway.sign()}`
  })
  after(async () => {
    for (const session of sessions) session.destroy()
    await gateway.close()
  })

  function open(): ClientHttp2Session {
    const session = connect(gateway.url, { rejectUnauthorized: false, maxSendHeaderBlockLength: 4 * KiB * KiB })
    sessions.push(session.on('error', () => {}))
    return session
  }

  type Outcome = { readonly status: number | undefined; readonly reset: number | undefined; readonly text: string }

  async function ask(on: ClientHttp2Session, headers: OutgoingHttpHeaders): Promise<Outcome> {
    const stream = on.request({ ':path': path, ...headers }).on('error', () => {})
    let [status, text]: [number | undefined, string] = [undefined, '']
    stream.on('response', answer => {
      status = answer[':status']
    })
    stream.on('data', chunk => {
      text += chunk
    })
    await new Promise(resolve => stream.on('close', resolve))
    return { status, reset: stream.rstCode, text }
  }

  /** A watch beside it, and how that goes. */
  async function neighbour(on: ClientHttp2Session) {
    const stream = on.request({ ':path': `${path}?watch=true`, authorization: good }).on('error', () => {})
    await once(stream, 'data')
    return stream
  }

  const parts = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-part-${index}`, 'A'.repeat(4 * KiB)]))

  test('more than 16 KiB get 401 for every header, as over HTTP/1.1, and nothing reaches the cluster', async () => {
    const reached = gateway.backend.got.length
    const session = open()
    for (const headers of [
      { authorization: `Bearer ${'A'.repeat(17 * KiB)}` },
      { authorization: `Bearer ${'A'.repeat(40 * KiB)}` },
      { authorization: good, 'x-other': 'A'.repeat(17 * KiB) },
      { authorization: good, ...parts(10) },
    ]) {
      const { status, text } = await ask(session, headers)
      assert.equal(status, 401)
      assert.equal(JSON.parse(text).reason, 'Unauthorized')
      assert.match(text, /16 KiB/)
    }
    assert.equal(gateway.backend.got.length, reached)
    assert.equal((await ask(session, { authorization: good, 'x-other': 'A'.repeat(12 * KiB) })).status, 200)
  })

  test('more than 64 KiB end the stream without a response, and other streams of the connection continue', async () => {
    const session = open()
    const beside = await neighbour(session)
    const reached = gateway.backend.got.length
    const { status, reset } = await ask(session, { authorization: good, ...parts(20) })
    assert.deepEqual([status, reset], [undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM])
    assert.equal(gateway.backend.got.length, reached)
    assert.equal((await ask(session, { authorization: good })).status, 200)
    assert.ok(!beside.destroyed)
  })

  for (const [what, headers, why] of [
    ['a token of 1 MiB', { authorization: `Bearer ${'A'.repeat(KiB * KiB)}` }, /^Protocol error$/],
    ['1 MiB of headers', parts(256), /CONTINUATION/],
  ] as const)
    test(`${what} on a shared connection ends it with a reason: nothing is forwarded, and the next connection works`, async () => {
      const session = open()
      const before = gateway.streams.open
      const beside = await neighbour(session)
      const [reached, told] = [gateway.backend.got.length, gateway.broken.length]
      const { status } = await ask(session, headers)
      assert.equal(status, undefined)
      await eventually('the connection has ended', async () => session.destroyed && beside.destroyed)
      await eventually('it was told', async () => gateway.broken.length === told + 1)
      assert.match(gateway.broken.at(-1) ?? '', why)
      assert.equal(gateway.backend.got.length, reached)
      await eventually('what it carried has ended', async () => gateway.streams.open === before)
      assert.equal((await ask(open(), { authorization: good })).status, 200)
    })

  /** A session whose peer has received our settings: the limits apply only then. */
  async function openTold(): Promise<ClientHttp2Session> {
    const session = open()
    assert.equal((await ask(session, { authorization: good })).status, 200)
    return session
  }
  const sizeOf = (headers: object, each: number) =>
    Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length + each, 0)
  const usual = () => {
    const { host } = new URL(gateway.url)
    return { ':authority': host, ':method': 'GET', ':path': path, ':scheme': 'https', authorization: good }
  }
  /** Headers that come to so many bytes, with `each` added for every one of them. */
  function headersOf(bytes: number, each: number): OutgoingHttpHeaders {
    const most = 20 * KiB
    const headers: { [name: string]: string } = { ...usual() }
    for (let index = 0; sizeOf(headers, each) < bytes; index++) {
      const name = `x-fill-${index}`
      const left = bytes - sizeOf(headers, each) - name.length - each
      headers[name] = 'A'.repeat(left > 2 * most ? most : left > most ? Math.floor(left / 2) : left)
    }
    assert.equal(sizeOf(headers, each), bytes)
    return headers
  }

  test('limits over HTTP/2: 16 KiB are read and one byte more gets 401; above 64 KiB the stream ends', async () => {
    const session = await openTold()
    for (const [bytes, each, expected] of [
      [16 * KiB, 0, [200, constants.NGHTTP2_NO_ERROR]],
      [16 * KiB + 1, 0, [401, constants.NGHTTP2_NO_ERROR]],
      // As RFC 9113 counts what is announced: 32 for every header.
      [64 * KiB, 32, [401, constants.NGHTTP2_NO_ERROR]],
      [64 * KiB + 1, 32, [undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM]],
    ] as const) {
      const { status, reset } = await ask(session, headersOf(bytes, each))
      assert.deepEqual([status, reset], expected, `${bytes}`)
    }
    assert.ok(!session.destroyed)
  })

  /** Encoded, four characters take three bytes: so many are 64 KiB. */
  const longestEncoded = Math.floor((64 * KiB * 8) / 6)
  for (const [what, below, above] of [
    [
      'one header of 64 KiB as it is encoded',
      { authorization: 'A'.repeat(longestEncoded) },
      { authorization: 'A'.repeat(longestEncoded + 1) },
    ],
    ['nine frames', parts(47), parts(48)],
  ] as const)
    test(`limits over HTTP/2: ${what} end the stream, and more end the connection`, async () => {
      const session = await openTold()
      const reached = gateway.backend.got.length
      const { status, reset } = await ask(session, below)
      assert.deepEqual([status, reset], [undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM])
      assert.ok(!session.destroyed)
      const { status: none } = await ask(session, above)
      assert.equal(none, undefined)
      await eventually('the connection has ended', async () => session.destroyed)
      assert.equal(gateway.backend.got.length, reached)
    })

  test('HTTP/2 clients learn the limit before they send large headers', async () => {
    const session = open()
    const [settings] = await once(session, 'remoteSettings')
    assert.equal(settings.maxHeaderListSize, 64 * KiB)
  })

  test('limits over HTTP/1.1: 16 KiB are read, and more gets 401', async () => {
    for (const [bytes, expected] of [
      [16 * KiB - 1, 200],
      [16 * KiB + 64, 401],
      [64 * KiB - 1, 401],
      [64 * KiB + 1, 401],
      [KiB * KiB, 401],
    ] as const) {
      const start = `GET ${path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nAuthorization: ${good}\r\nX-Fill: `
      const answer = await sendBare(`${start}${'A'.repeat(bytes - start.length - 4)}\r\n\r\n`)
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${expected} `), `${bytes}`)
    }
  })
  async function sendBare(bytes: string): Promise<string> {
    const { hostname: host, port } = new URL(gateway.url)
    const socket = connectTls({ host, port: Number(port), rejectUnauthorized: false })
    let text = ''
    socket.on('error', () => {})
    socket.on('data', chunk => {
      text += chunk
    })
    socket.write(bytes)
    await once(socket, 'close')
    return text
  }
})
