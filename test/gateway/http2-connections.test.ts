// How a connection that watches share begins and ends where the cluster does not play along: it retires, says goodbye at once, or falls silent.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { constants, createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, connect as connectTcp, createServer as createTcp, type Server, type Socket } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import { createServer as createTls } from 'node:tls'
import type { ConnectHttp2 } from '../../src/gateway/proxy/http2-connect.ts'
import { acquireStream, type StreamSlot } from '../../src/gateway/proxy/http2-pool.ts'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { openDial } from '../../src/transport/dial.ts'
import { eventually } from '../support/wire.ts'

const authority = makeAuthority(Date.now())
const { certificate, key } = issueCertificate(authority, ['127.0.0.1'], Date.now())
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
const until = (what: string, is: () => boolean) => eventually(what, async () => is())

/** A cluster behind something that can fall silent, and the way to it. `sockets`: what was opened to it. */
async function openWay(greet: (session: ServerHttp2Session) => void = () => {}) {
  const sessions: ServerHttp2Session[] = []
  const streams: ServerHttp2Stream[] = []
  const cluster = createSecureServer({ cert: certificate, key })
  cluster.on('session', session => {
    sessions.push(session)
    session.on('error', () => {})
    greet(session)
  })
  cluster.on('stream', stream => {
    streams.push(stream)
    stream.on('error', () => {})
    stream.respond({ ':status': 200 })
    stream.write('first')
  })
  closing.push(() => {
    for (const session of sessions) session.destroy()
  })
  return { ...(await wayTo(cluster)), sessions, streams }
}

/** A cluster that says in one piece how many streams it takes, and that it takes no more. */
function openBrief() {
  const [settings, goaway] = ['000000040000000000', '000008070000000000' + '0000000000000000']
  const cluster = createTls({ cert: certificate, key, ALPNProtocols: ['h2'] }, socket => {
    socket.on('error', () => {}).resume()
    socket.write(Buffer.from(`${settings}${goaway}`, 'hex'))
  })
  return wayTo(cluster)
}

async function wayTo(cluster: Server) {
  const held: Socket[] = []
  const between = createTcp({ allowHalfOpen: true }, socket => {
    const other = connectTcp((cluster.address() as AddressInfo).port, '127.0.0.1')
    held.push(socket, other)
    for (const one of [socket, other]) one.on('error', () => {})
    socket.pipe(other).pipe(socket)
  })
  for (const server of [cluster, between]) await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(() => {
    for (const socket of held) socket.destroy()
    cluster.close()
    between.close()
  })
  const server = `https://127.0.0.1:${(between.address() as AddressInfo).port}`
  const access = { server, namespace: '', insecure: false, ca: { text: authority.certificate } }
  const dial = openDial(access, { env: {}, now: Date.now })
  const { connectHttp2, retired } = await dial.now()
  const sockets: Socket[] = []
  const tapped: ConnectHttp2 = () => {
    const socket = (connectHttp2 as ConnectHttp2)()
    sockets.push(socket)
    return socket
  }
  closing.push(() => dial.retire())
  const wanted = { server, connectWithin: 10_000, isFresh: false, retired, pingEvery: 1500 }
  const silence = () => {
    for (const socket of held) socket.unpipe().pause()
  }
  return { take: (more = {}) => acquireStream(tapped, { ...wanted, ...more }), dial, sockets, silence }
}

function listen(place: StreamSlot | undefined) {
  const heard = { text: '', error: undefined as Error | undefined }
  place?.send(
    { ':path': '/' },
    {
      head: () => {},
      data: chunk => {
        heard.text += chunk
      },
      end: () => {},
      failed: error => {
        heard.error = error
      },
    },
  )
  return heard
}

describe('a stream on a shared connection', { timeout: 120_000 }, () => {
  test('is not available in a retired pool, which opens no connection', async () => {
    const way = await openWay()
    way.dial.retire()
    assert.equal(await way.take(), undefined)
    assert.equal(way.sockets.length, 0)
  })

  test('is not available if the pool retires while it connects', async () => {
    const way = await openWay(() => way.dial.retire())
    assert.equal(await way.take(), undefined)
    assert.equal(way.sockets.length, 1)
    await until('the connection ends', () => way.sockets[0]?.destroyed === true)
  })

  test('a cluster that closes immediately is tried twice, however many requests wait', async () => {
    const way = await openBrief()
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => way.take()))
    assert.ok(outcomes.every(one => one.status === 'rejected' || one.value === undefined))
    assert.ok(way.sockets.length <= 2, `${way.sockets.length} connections`)
  })

  test('a client that disconnected opens no further connection', async () => {
    const way = await openBrief()
    await way.take({ isGone: () => way.sockets.length > 0 }).catch(() => {})
    assert.equal(way.sockets.length, 1)
  })
})

describe('a shared connection that ends', { timeout: 120_000 }, () => {
  test('does not wait for an unresponsive cluster, and affects nobody else', async () => {
    const way = await openWay()
    const place = await way.take()
    assert.ok(place)
    way.silence()
    way.dial.retire()
    place.release()
    await until('the gateway has let go of it', () => way.sockets[0]?.destroyed === true)
  })

  test('ends its streams if the cluster is silent after GOAWAY', async () => {
    const way = await openWay()
    const heard = listen(await way.take())
    await until('it has begun', () => heard.text === 'first')
    way.sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR)
    await eventually('it takes nothing new', async () => {
      ;(await way.take())?.release()
      return way.sockets.length === 2
    })
    way.silence()
    await until('it is given up', () => heard.error !== undefined)
    assert.match(heard.error?.message ?? '', /no response to HTTP\/2 pings/)
    await until('the gateway has let go of it', () => way.sockets[0]?.destroyed === true)
  })

  test('keeps idle streams while the cluster responds, also after GOAWAY', async () => {
    const way = await openWay()
    const heard = listen(await way.take({ pingEvery: 1500 }))
    await until('it has begun', () => heard.text === 'first')
    let answered = 0
    way.sessions[0]?.on('remoteSettings', () => answered++)
    way.sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR)
    await until('the cluster received a few pings', () => answered > 3)
    way.streams[0]?.end('last')
    await until('all has come', () => heard.text === 'firstlast')
    assert.equal(heard.error, undefined)
  })
})
