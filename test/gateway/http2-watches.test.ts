// Watches over connections that they share, by HTTP/2: what holds for a connection of one's own holds for a stream, and neighbours notice nothing.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { constants } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, connect as connectTcp, createServer as createTcp, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { createServer as createTls } from 'node:tls'
import { acquireStream } from '../../src/gateway/proxy/http2-pool.ts'
import { makeAuthority } from '../../src/serving/certificate.ts'
import { frame } from '../support/http2-frames.ts'
import { eventually, unchanged } from '../support/wire.ts'
import { authority, closing, dialTo, openBefore, openCluster, tls, until, watch } from './http2-cluster.ts'
import { claimsFor } from './in-process.ts'

describe('watches that share a connection', () => {
  test('many watches use one connection, and each is streamed until the cluster ends it', async () => {
    const cluster = await openCluster()
    const gateway = await openBefore(cluster.url)
    const all = await Promise.all(Array.from({ length: 20 }, () => watch(gateway)))
    assert.equal(cluster.sessions.size, 1)
    assert.ok(all.every(({ answer }) => !answer.headers['set-cookie'] && answer.headers['x-kubernetes-pf'] === 'a'))
    for (const { response } of cluster.got) response.write('second\n')
    await until('all have heard', () => all.every(({ text }) => text === 'first\nsecond\n'))
    cluster.got[0]?.response.end()
    await until('one has ended', () => all.filter(({ end }) => end === 'whole').length === 1)
    assert.equal(all.filter(({ end }) => end === 'open').length, 19)
  })

  test('the cluster sees the authenticated identity, and no identity headers of the client', async () => {
    const cluster = await openCluster()
    const gateway = await openBefore(cluster.url)
    await watch(gateway, {
      'X-Remote-User': 'root',
      Cookie: 'a=b',
      Connection: 'X-Secret',
      'X-Secret': '1',
      Accept: 'text/x',
    })
    const headers = cluster.got[0]?.request.headers ?? {}
    assert.equal(headers['impersonate-user'], 'ada')
    assert.equal(headers['impersonate-group'], 'system:authenticated, platform:user:ada, ops')
    assert.equal(headers[':authority'], new URL(cluster.url).host)
    assert.equal(headers.accept, 'text/x')
    for (const name of ['x-remote-user', 'cookie', 'x-secret', 'authorization'])
      assert.equal(headers[name], undefined, name)
  })

  test('a client that disconnects and a revoked token end one stream; the others stay', async () => {
    const cluster = await openCluster()
    const gateway = await openBefore(cluster.url)
    const claims = claimsFor()
    const [first, second, third] = [await watch(gateway), await watch(gateway, {}, claims), await watch(gateway)]
    first.answer.destroy()
    await until('the cluster hears of it', () => cluster.got[0]?.request.stream.destroyed === true)
    assert.equal(cluster.got[0]?.request.stream.rstCode, constants.NGHTTP2_CANCEL)
    await gateway.revoke({ jti: claims.jti })
    await until('it is cut', () => second.end === 'whole' && cluster.got[1]?.request.stream.destroyed === true)
    assert.match(second.text, /\n\{"type":"ERROR","object":\{.*"code":401.*\}\}\n$/)
    cluster.got[2]?.response.write('still\n')
    await until('the third continues', () => third.text.endsWith('still\n'))
    assert.equal(cluster.sessions.size, 1)
  })

  test('a slow reader pauses only its own stream', async () => {
    const chunk = Buffer.alloc(16 * 1024)
    let written = 0
    const cluster = await openCluster({}, ({ response }) => {
      response.writeHead(200)
      response.write('first\n')
      if (cluster.got.length > 1) return
      const push = () => {
        while (written < 64 * 1024 * 1024) {
          written += chunk.length
          if (!response.write(chunk)) return void response.once('drain', push)
        }
      }
      push()
    })
    const gateway = await openBefore(cluster.url)
    const slow = await watch(gateway)
    slow.answer.pause()
    await unchanged('the cluster has to wait', () => written)
    assert.ok(written < 32 * 1024 * 1024, `${written} bytes were taken from the cluster`)
    const quick = await watch(gateway)
    await until('the other one hears', () => quick.text === 'first\n')
    assert.equal(cluster.sessions.size, 1)
    slow.answer.resume()
    await until('it goes on', () => slow.text.length > 32 * 1024 * 1024)
  })

  test('a partial response does not look complete', async () => {
    const cluster = await openCluster()
    const gateway = await openBefore(cluster.url)
    const [one, other] = [await watch(gateway), await watch(gateway)]
    cluster.got[0]?.response.stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    await until('the first is broken', () => one.end === 'broken')
    for (const session of cluster.sessions) session.destroy()
    await until('the second is broken', () => other.end === 'broken')
    assert.equal((await watch(gateway)).status, 200, 'the next one has a new connection')
  })

  test('a cluster with a low stream limit gets more connections', async () => {
    const cluster = await openCluster({ maxConcurrentStreams: 3 })
    const gateway = await openBefore(cluster.url)
    const all = await Promise.all(Array.from({ length: 7 }, () => watch(gateway)))
    await until('all have begun', () => all.every(({ text }) => text === 'first\n'))
    assert.equal(cluster.sessions.size, 3)
  })

  test('a closing connection gets no new streams, and its open ones continue', async () => {
    const cluster = await openCluster()
    const gateway = await openBefore(cluster.url)
    const old = await watch(gateway)
    for (const session of cluster.sessions) session.goaway(constants.NGHTTP2_NO_ERROR)
    await eventually('new ones go elsewhere', async () => {
      const next = await watch(gateway)
      next.answer.destroy()
      return cluster.sessions.size === 2
    })
    cluster.got[0]?.response.write('still\n')
    await until('the old one continues', () => old.text.endsWith('still\n'))
  })

  test('a stream that the cluster did not process is retried once', async () => {
    let refused = 0
    const cluster = await openCluster({}, ({ response }) => {
      if (refused++ === 0) return void response.stream.close(constants.NGHTTP2_REFUSED_STREAM)
      response.end('fine')
    })
    const seen = await watch(await openBefore(cluster.url))
    await until('it is whole', () => seen.end === 'whole')
    assert.deepEqual([seen.status, seen.text, refused], [200, 'fine', 2])
  })

  test('redirects and rejected gateway credentials are a 502 of the gateway', async () => {
    let status = 302
    const cluster = await openCluster({}, ({ response }) => {
      response.writeHead(status, { location: 'https://evil.example' }).end('evil')
    })
    const gateway = await openBefore(cluster.url)
    for (const [code, words] of [
      [302, /redirect/],
      [401, /rejected the credentials of the gateway/],
    ] as const) {
      status = code
      const seen = await watch(gateway)
      await until('it is whole', () => seen.end === 'whole')
      assert.equal(seen.status, 502)
      assert.match(seen.text, words)
      assert.ok(!seen.text.includes('evil'))
    }
  })

  test('a 304 is complete without the body whose length it has; other responses are not', async () => {
    let status = 304
    const cluster = await openCluster({}, ({ response }) => {
      response.stream.respond({ ':status': status, 'content-length': '5' }, { endStream: true })
    })
    const dial = dialTo(cluster.url)
    closing.push(() => dial.retire())
    const { connectHttp2, retired } = await dial.now()
    assert.ok(connectHttp2)
    const outcome = async (code: number) => {
      status = code
      const place = await acquireStream(connectHttp2, {
        server: cluster.url,
        connectWithin: 10_000,
        isFresh: false,
        retired,
      })
      return new Promise<string>(resolve => {
        const nothing = () => {}
        const failed = () => resolve('broken')
        place?.send({ ':path': '/' }, { head: nothing, data: nothing, end: () => resolve('whole'), failed })
      })
    }
    assert.equal(await outcome(304), 'whole')
    assert.equal(await outcome(200), 'broken')
  })

  for (const [what, text] of [
    ['a line end', 'Bearer a\r\nX-Remote-User: root'],
    ['a zero', 'Bearer a\0b'],
  ] as const)
    test(`a header with ${what} is not sent`, async () => {
      const cluster = await openCluster()
      const dial = dialTo(cluster.url)
      const now = async () => ({ ...(await dial.now()), authorization: text })
      const seen = await watch(await openBefore(cluster.url, { ...dial, now }))
      assert.equal(seen.status, 400)
      assert.equal(cluster.got.length, 0)
      assert.equal(cluster.sessions.size, 0)
    })

  test('requests with repeated headers use HTTP/1.1, and so do clusters without HTTP/2', async () => {
    const cluster = await openCluster()
    const gateway = await openBefore(cluster.url)
    const twice = await watch(gateway, { 'If-Match': ['a', 'b'] })
    assert.equal(twice.status, 200)
    assert.equal(cluster.got[0]?.request.httpVersionMajor, 1)
    const plain = createHttps(tls, (_, response) => void response.end('plain'))
    plain.listen(0, '127.0.0.1')
    await once(plain, 'listening')
    closing.push(() => {
      plain.closeAllConnections()
      plain.close()
    })
    const other = await openBefore(`https://127.0.0.1:${(plain.address() as AddressInfo).port}`)
    for (const _ of [1, 2]) {
      const seen = await watch(other)
      await until('it is whole', () => seen.end === 'whole')
      assert.deepEqual([seen.status, seen.text], [200, 'plain'])
    }
  })

  test('an unreachable cluster is 503, an untrusted certificate 502', async () => {
    const cluster = await openCluster()
    for (const [server, ca, code] of [
      ['https://127.0.0.1:1', authority.certificate, 503],
      [cluster.url, makeAuthority(Date.now()).certificate, 502],
    ] as const)
      assert.equal((await watch(await openBefore(server, dialTo(server, ca)))).status, code)
  })

  test('a changed cluster address closes connections: idle ones immediately, others after their streams', async () => {
    const cluster = await openCluster()
    const dial = dialTo(cluster.url)
    const gateway = await openBefore(cluster.url, dial)
    const seen = await watch(gateway)
    dial.retire()
    cluster.got[0]?.response.write('still\n')
    await until('it goes on', () => seen.text.endsWith('still\n'))
    assert.equal(cluster.sessions.size, 1)
    cluster.got[0]?.response.end()
    await until('the connection ends with it', () => cluster.sessions.size === 0)
    const idle = dialTo(cluster.url)
    const next = await watch(await openBefore(cluster.url, idle))
    next.answer.destroy()
    await until('nobody uses it', () => cluster.got[1]?.request.stream.destroyed === true)
    assert.equal(cluster.sessions.size, 1)
    idle.retire()
    await until('it ends', () => cluster.sessions.size === 0)
  })

  test('data that arrives with the headers is delivered after them, and none is lost', async () => {
    const none = Buffer.alloc(0)
    const [settings, ok] = [frame(4, 0, 0, none), Buffer.from([0x88])]
    const answer = Buffer.concat([frame(1, 4, 1, ok), frame(0, 0, 1, Buffer.from('first')), frame(0, 1, 1, none)])
    const byHand = createTls({ ...tls, ALPNProtocols: ['h2'] }, socket => {
      socket.on('error', () => {}).write(settings)
      let got = none
      let at = 24 // behind the preface
      socket.on('data', chunk => {
        got = Buffer.concat([got, chunk])
        for (; at + 9 <= got.length; at += 9 + got.readUIntBE(at, 3))
          if (got.readUInt8(at + 3) === 1) socket.write(answer)
      })
    }).listen(0, '127.0.0.1')
    await once(byHand, 'listening')
    closing.push(() => byHand.close())
    const server = `https://127.0.0.1:${(byHand.address() as AddressInfo).port}`
    const dial = dialTo(server)
    closing.push(() => dial.retire())
    const { connectHttp2, retired } = await dial.now()
    assert.ok(connectHttp2)
    const place = await acquireStream(connectHttp2, { server, connectWithin: 10_000, isFresh: false, retired })
    const told: string[] = []
    await new Promise<void>((resolve, reject) =>
      place?.send(
        { ':path': '/' },
        {
          head: ({ status }) => void told.push(String(status)),
          data: chunk => void told.push(String(chunk)),
          end: resolve,
          failed: reject,
        },
      ),
    )
    assert.deepEqual(told, ['200', 'first'])
  })

  test('a silent cluster ends its streams, even if the connection is open', async () => {
    const cluster = await openCluster()
    const held: Socket[] = []
    const { port } = new URL(cluster.url)
    const between = createTcp(socket => {
      const other = connectTcp(Number(port), '127.0.0.1')
      held.push(socket, other)
      for (const one of [socket, other]) one.on('error', () => {})
      socket.pipe(other).pipe(socket)
    }).listen(0, '127.0.0.1')
    await once(between, 'listening')
    closing.push(() => {
      for (const socket of held) socket.destroy()
      between.close()
    })
    const server = `https://127.0.0.1:${(between.address() as AddressInfo).port}`
    const { connectHttp2 } = await dialTo(server).now()
    assert.ok(connectHttp2)
    const place = await acquireStream(connectHttp2, { server, connectWithin: 10_000, isFresh: false, pingEvery: 1500 })
    const failed = new Promise<Error>(resolve => {
      const nothing = () => {}
      place?.send({ ':path': '/' }, { head: nothing, data: nothing, end: nothing, failed: resolve })
    })
    await until('it has asked', () => cluster.got.length === 1)
    for (const socket of held) socket.unpipe().pause()
    assert.match((await failed).message, /no response to HTTP\/2 pings/)
  })
})
