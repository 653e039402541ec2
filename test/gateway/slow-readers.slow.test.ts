// Clients that ask for much and take little of it: how long they may hold a place among those that are under way.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { request } from 'node:https'
import { after, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect } from 'node:tls'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { closeAll } from '../support/close-all.ts'
import { eventually as until } from '../support/wire.ts'
import { openBackend, openTestGateway, type TestGateway } from './in-process.ts'

const current = issueCertificate(makeAuthority(Date.now()), ['127.0.0.1'], Date.now())
const certificates = { current, follow: () => {}, stop: () => {} }
const closing: (() => unknown)[] = []
after(() => closeAll(...closing.splice(0).reverse()))
const path = '/kubernetes/cluster/prod/api/v1/pods'
const much = 24 * 1024 * 1024
const piece = Buffer.alloc(64 * 1024, 0x20)

/** Answers that the cluster has not given yet. */
const owed = new Map<string, ServerResponse>()

/** A cluster with much to say, and a gateway that lets in so many of each kind at once. */
async function open(take: number, most = 1): Promise<TestGateway> {
  const backend = await openBackend((request, response) => {
    request.resume()
    if (request.url?.includes('later')) return void owed.set(request.url, response)
    if (request.url?.includes('small')) return void response.end('{}')
    let left = much
    const more = () => {
      while (left > 0) {
        left -= piece.length
        if (!response.write(piece)) return void response.once('drain', more)
      }
      if (!request.url?.includes('watch')) response.end()
    }
    more()
  })
  const gateway = await openTestGateway({ backend, certificates, most, timeouts: { take } })
  closing.push(() => gateway.close())
  return gateway
}

const ask = (gateway: TestGateway, method: string, token: string, target = `${path}/small`) =>
  new Promise<number>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` }
    const sent = request(`${gateway.url}${target}`, { method, headers, rejectUnauthorized: false, agent: false })
    sent.on('error', reject)
    sent.on('response', answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    })
    sent.end(method === 'POST' ? '{}' : undefined)
  })

async function overHttp1(gateway: TestGateway, method: string, target: string, token: string) {
  const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', rejectUnauthorized: false })
  closing.push(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  const body = method === 'POST' ? 'Content-Length: 2\r\n\r\n{}' : '\r\n'
  socket.write(`${method} ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${body}`)
  await once(socket, 'readable')
  return socket
}

async function overHttp2(gateway: TestGateway, method: string, target: string, token: string) {
  const session: ClientHttp2Session = connectHttp2(gateway.url, { rejectUnauthorized: false })
  closing.push(() => session.destroy())
  session.on('error', () => {})
  const stream = session.request({ ':method': method, ':path': target, authorization: `Bearer ${token}` })
  stream.on('error', () => {})
  stream.end(method === 'POST' ? '{}' : undefined)
  await once(stream, 'response')
  return stream
}

describe('a client that does not read a response', { timeout: 120_000, concurrency: true }, () => {
  for (const [over, begin] of [
    ['HTTP/1.1', overHttp1],
    ['HTTP/2', overHttp2],
  ] as const)
    for (const method of ['GET', 'POST'])
      test(`occupies its slot for a limited time: ${method} over ${over}`, async () => {
        const gateway = await open(4000)
        const token = await gateway.sign()
        await begin(gateway, method, path, token)
        assert.equal(await ask(gateway, method, token), 429)
        await until('its place is free', async () => (await ask(gateway, method, token)) !== 429)
        assert.equal(await ask(gateway, method, token), 200)
        await until('the cluster is not asked for the rest', async () => gateway.streams.open === 0)
      })

  test('gets an aborted connection, so that the response does not look complete', async () => {
    const gateway = await open(500)
    const socket = await overHttp1(gateway, 'GET', path, await gateway.sign())
    await until('its place is free', async () => gateway.streams.open === 0)
    let taken = 0
    let last = ''
    socket.on('data', (chunk: Buffer) => {
      taken += chunk.length
      last = chunk.subarray(-5).toString()
    })
    await once(socket, 'close')
    assert.ok(taken < much, `${taken}`)
    assert.notEqual(last, '0\r\n\r\n')
  })

  test('may read a watch as slowly as it likes: streams have their own limit', async () => {
    const gateway = await open(300)
    const token = await gateway.sign()
    const slow = await overHttp1(gateway, 'GET', `${path}?watch=true`, token)
    await overHttp1(gateway, 'GET', path, token)
    await until('the other one is gone', async () => gateway.streams.open === 1)
    assert.equal(await ask(gateway, 'GET', token), 200)
    assert.equal(await ask(gateway, 'GET', token, `${path}?watch=true&small`), 429)
    assert.ok(!slow.destroyed)
  })

  /** Two requests that are sent at once over one connection: what is answered is in their order. */
  async function pipeline(
    gateway: TestGateway,
    first: string,
    second: { readonly method: string; readonly path: string },
  ) {
    const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', rejectUnauthorized: false })
    closing.push(() => socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    const head = `Host: a\r\nAuthorization: Bearer ${await gateway.sign()}\r\n`
    const body = second.method === 'POST' ? 'Content-Length: 2\r\n\r\n{}' : '\r\n'
    socket.write(`GET ${first} HTTP/1.1\r\n${head}\r\n${second.method} ${second.path} HTTP/1.1\r\n${head}${body}`)
    return socket
  }

  for (const method of ['GET', 'POST'])
    for (const size of ['small', 'much'])
      test(`is not one whose response waits behind another one (${method}, ${size})`, async () => {
        const gateway = await open(2000, 2)
        const first = `/later/${method}/${size}`
        const isSmall = size === 'small'
        const socket = await pipeline(gateway, `${path}${first}`, { method, path: isSmall ? `${path}/small` : path })
        let [taken, answers] = [0, 0]
        socket.on('data', (chunk: Buffer) => {
          taken += chunk.length
          answers += chunk.toString('latin1').match(/HTTP\/1\.1 200 OK/g)?.length ?? 0
        })
        await until('the cluster received both requests', async () => gateway.backend.got.length === 2)
        await wait(4500)
        assert.ok(!socket.destroyed)
        owed.get(`/api/v1/pods${first}`)?.end('{}')
        await until('it has both', async () => answers === 2 && taken > (isSmall ? 0 : much))
        await until('no place is held', async () => gateway.streams.open === 0)
        assert.deepEqual(
          gateway.seen.map(({ code }) => code),
          [200, 200],
        )
        assert.ok(!socket.destroyed)
      })

  for (const method of ['GET', 'POST'])
    test(`occupies no slot for a response that the cluster aborted, even if it is not next: ${method}`, async () => {
      const gateway = await open(30_000, 2)
      const first = `/later/broken/${method}`
      const second = `${path}/later/half/${method}`
      const socket = await pipeline(gateway, `${path}${first}`, { method, path: second })
      let text = ''
      socket.on('data', chunk => {
        text += chunk
      })
      await until('both are under way', async () => gateway.backend.got.length === 2)
      const half = owed.get(`/api/v1/pods/later/half/${method}`)
      half?.write('half of it')
      await until('it has begun', async () => half?.writableLength === 0)
      half?.destroy()
      await until('its place is free', async () => gateway.streams.open === 1)
      const ended = once(socket, 'close')
      owed.get(`/api/v1/pods${first}`)?.end('the first to its end')
      await ended
      assert.match(text, /the first to its end/)
    })

  test('does not occupy a slot forever behind a stream; when the stream ends the connection ends, too', async () => {
    const gateway = await open(4000, 2)
    const socket = await pipeline(gateway, `${path}?watch=true&later`, { method: 'GET', path })
    let text = ''
    socket.on('data', chunk => {
      text += chunk
    })
    await until('both are under way', async () => gateway.streams.open === 2)
    await until('its place is free', async () => gateway.streams.open === 1)
    assert.ok(!socket.destroyed, 'the watcher of a stream may continue')
    const ended = once(socket, 'close')
    owed.get('/api/v1/pods?watch=true&later')?.end('the stream to its end')
    await ended
    assert.match(text, /the stream to its end/)
    assert.equal(text.match(/HTTP\/1\.1 200/g)?.length, 1)
  })

  for (const method of ['GET', 'POST'])
    test(`gets the whole response if it reads a little at a time: ${method}`, async () => {
      const [longest, pause] = [4000, 100]
      const gateway = await open(longest)
      const stream = await overHttp2(gateway, method, path, await gateway.sign())
      let [taken, paused] = [0, 0]
      for await (const chunk of stream) {
        const before = Math.floor((taken * 50) / much)
        taken += (chunk as Buffer).length
        if (Math.floor((taken * 50) / much) === before) continue
        await wait(pause)
        paused += pause
      }
      assert.equal(taken, much)
      assert.ok(paused > longest, 'longer than a piece may take')
    })
})
