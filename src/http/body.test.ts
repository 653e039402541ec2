// Reads bodies: of a client that has left, and of many requests at once.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, request } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { growthBy } from '../../test/support/heap.ts'
import { openExchange } from '../serving/exchange.ts'
import { readBytes } from './body.ts'

/** Reads the body after the client has left. */
function serveLate(t: TestContext, version: 1 | 2) {
  const { promise: left, resolve: leave } = Promise.withResolvers<void>()
  const { promise: outcome, resolve } = Promise.withResolvers<unknown>()
  const handle: RequestListener = (asked, response) => {
    const exchange = openExchange(asked, response, () => 'id')
    const read = () => void readBytes(exchange).then(bytes => resolve(`read ${bytes}`), resolve)
    exchange.onClosed(() => setImmediate(read))
    leave()
  }
  const server = version === 1 ? createServer(handle) : createHttp2Server(handle as never)
  t.after(() => server.close())
  return { server: server.listen(0, '127.0.0.1'), left, outcome }
}

test('a client that has left, over HTTP/1', { timeout: 10_000 }, async t => {
  const { server, left, outcome } = serveLate(t, 1)
  await once(server, 'listening')
  const asked = request({ port: (server.address() as AddressInfo).port, method: 'POST' }).on('error', () => {})
  asked.end('{}')
  await left
  asked.destroy()
  assert.equal(((await outcome) as { readonly code: number }).code, 400)
})

test('a client that has left, over HTTP/2', { timeout: 10_000 }, async t => {
  const { server, left, outcome } = serveLate(t, 2)
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).on('error', () => {})
  t.after(() => session.destroy())
  session
    .request({ ':method': 'POST' })
    .on('error', () => {})
    .end('{}')
  await left
  session.destroy()
  assert.equal(((await outcome) as { readonly code: number }).code, 400)
})

for (const version of [1, 2] as const)
  test(`a request without a response keeps no body that was read, over HTTP/${version}`, {
    timeout: 60_000,
  }, async t => {
    const requests = 20
    const body = Buffer.alloc(2_000_000)
    const unanswered: unknown[] = []
    let read = () => {}
    const handle: RequestListener = (asked, response) => {
      const exchange = openExchange(asked, response, () => 'id')
      unanswered.push(exchange)
      void readBytes(exchange).then(({ length }) => {
        assert.equal(length, body.length)
        read()
      })
    }
    const server = version === 1 ? createServer(handle) : createHttp2Server(handle as never)
    t.after(() => server.close())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const session = version === 2 ? connect(`http://127.0.0.1:${port}`) : undefined
    t.after(() => session?.destroy())
    const send = async () => {
      const isRead = new Promise<void>(resolve => {
        read = resolve
      })
      const asked = session?.request({ ':method': 'POST' }) ?? request({ port, method: 'POST', agent: false })
      t.after(() => asked.destroy())
      asked.on('error', () => {}).end(body)
      await isRead
    }
    await send()
    const limit = (requests * body.length) / 4
    const growth = await growthBy(async () => {
      for (let count = 0; count < requests; count++) await send()
    }, limit)
    assert.ok(growth < limit, `${requests} requests keep ${growth} bytes`)
    assert.equal(unanswered.length, requests + 1)
  })
