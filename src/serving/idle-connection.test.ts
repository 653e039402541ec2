// A listener does not keep the last request of an idle connection in memory, nor what the handler's event listeners refer to.

import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { growthBy } from '../../test/support/heap.ts'
import { openBare } from '../../test/support/wire.ts'
import { makeAuthority } from './certificate.ts'
import { type Handle, listenHttp, listenHttps } from './listener.ts'
import { ownCertificate } from './tls.ts'

const authority = makeAuthority(Date.now())
const tls = { ca: authority.certificate }
const address = { host: '127.0.0.1', port: 0 }
const https = (handle: Handle) =>
  listenHttps(address, ownCertificate(authority, ['localhost', '127.0.0.1'], Date.now), handle)
const http = (handle: Handle) => listenHttp(address, handle)
const connections = 30
const body = Buffer.alloc(1_000_000)

for (const [scheme, listen] of [
  ['http', http],
  ['https', https],
] as const)
  test(`${scheme}: an idle connection does not keep its last request`, { timeout: 60_000 }, async context => {
    const listener = await listen((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', chunk => chunks.push(chunk)).on('end', () => response.end('done'))
    })
    context.after(() => listener.close(0))
    const send = async () => {
      const { socket, until } = await openBare(listener.url, scheme === 'https' ? tls : undefined)
      context.after(() => socket.destroy())
      socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`)
      socket.write(body)
      await until('done')
      return socket
    }
    await send()
    const sockets: Socket[] = []
    const limit = (connections * body.length) / 4
    const growth = await growthBy(async () => {
      for (let count = 0; count < connections; count++) sockets.push(await send())
    }, limit)
    assert.ok(growth < limit, `${connections} idle connections keep ${growth} bytes`)
    assert.ok(sockets.every(socket => socket.readable))
  })
