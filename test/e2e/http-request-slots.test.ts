// Resources that a client occupies: an inflight slot is released however the client disconnects (D1).

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Server, startServer } from '../support/server.ts'
import { eventually, group, openBare, openWire, type Wire } from '../support/wire.ts'

const teams = `${group}/teams`
const json = { 'content-type': 'application/json' }

describe('inflight slots', { timeout: 120_000 }, () => {
  let server: Server
  let wire: Wire
  before(async () => {
    server = await startServer({ storage: 'memory' })
    wire = openWire(server)
    // Random, so that the list is large when compressed, too.
    for (let n = 0; n < 6; n++) {
      const annotations = { big: randomBytes(150_000).toString('base64') }
      const body = JSON.stringify({ metadata: { name: `big${n}`, annotations } })
      assert.equal((await wire(teams, { method: 'POST', headers: json, body })).code, 201)
    }
  })
  after(() => server.stop())

  const underWay = async (kind: 'readOnly' | 'mutating') =>
    Number(
      new RegExp(`^apiserver_current_inflight_requests\\{request_kind="${kind}"\\} (\\d+)$`, 'm').exec(
        (await wire('/metrics')).text,
      )?.[1],
    )
  const watches = async () =>
    Number(/^apiserver_longrunning_requests\{verb="WATCH"\} (\d+)$/m.exec((await wire('/metrics')).text)?.[1])
  const nothingIsHeld = () =>
    eventually('nothing is under way', async () => (await underWay('readOnly')) + (await underWay('mutating')) === 0)
  const authorization = () => `Bearer ${server.adminKey}`
  const openSession = (): ClientHttp2Session => {
    const session = connectHttp2(server.https, { ca: server.ca, servername: 'localhost' })
    session.on('error', () => {})
    return session
  }
  const head = (line: string) => `${line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization()}\r\n`

  test('HTTP/2 streams that are cancelled at any time during a large compressed response', async () => {
    const session = openSession()
    for (let n = 0; n < 40; n++) {
      const stream = session.request({ ':path': teams, authorization: authorization(), 'accept-encoding': 'gzip' })
      stream.on('error', () => {})
      await wait(n % 20)
      stream.close(constants.NGHTTP2_CANCEL)
    }
    await nothingIsHeld()
    session.destroy()
  })

  test('pipelined requests on a connection that breaks, and watches likewise', async () => {
    const bare = await openBare(server.http)
    bare.socket.pause()
    const list = `${head(`GET ${teams}`)}\r\n`
    bare.socket.write(list.repeat(20) + `${head(`GET ${teams}?watch=true`)}\r\n`.repeat(20))
    await eventually('they are under way', async () => (await underWay('readOnly')) > 1 && (await watches()) > 1)
    bare.socket.destroy()
    await nothingIsHeld()
    await eventually('no watch is open', async () => (await watches()) === 0)
  })

  test('a write whose body does not arrive gets 504 in time and releases its slot, over HTTP/1.1', async () => {
    const bare = await openBare(server.http)
    bare.socket.write(`${head(`POST ${teams}?timeout=200ms`)}Content-Length: 100\r\n\r\n{"metadata":`)
    assert.match(await bare.ended(), /^HTTP\/1\.1 504 .*"reason":"Timeout"/s)
    await nothingIsHeld()
  })

  test('a body that arrives after its 504 changes nothing', async () => {
    const body = '{"metadata":{"name":"too-late"}}'
    const bare = await openBare(server.http)
    bare.socket.write(`${head(`POST ${teams}?timeout=200ms`)}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`)
    assert.match(await bare.until('"reason":"Timeout"'), /^HTTP\/1\.1 504 /)
    bare.socket.write(body.slice(9))
    await bare.ended()
    await nothingIsHeld()
    assert.equal((await wire(`${teams}/too-late`)).code, 404)
  })

  test('a write whose body does not arrive gets 504 in time and releases its slot, over HTTP/2', async () => {
    const session = openSession()
    const headers = { ':method': 'POST', ':path': `${teams}?timeout=200ms`, authorization: authorization(), ...json }
    const stream = session.request(headers)
    stream.on('error', () => {})
    stream.write('{"metadata":')
    const [answer] = await once(stream, 'response')
    assert.equal(answer[':status'], 504)
    await nothingIsHeld()
    session.destroy()
  })
})
