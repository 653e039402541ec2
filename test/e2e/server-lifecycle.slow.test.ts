// The time that a server takes to end while clients hold connections: at most ten seconds (issue 2 §6). server-lifecycle.test.ts tests how it ends.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { startServer } from '../support/server.ts'
import { eventually, group, openBare, openWire } from '../support/wire.ts'

const longest = 10_000

test('a server stops within ten seconds, with unfinished requests of clients', { timeout: 120_000 }, async t => {
  const server = await startServer({ storage: 'sqlite' })
  t.after(() => server.stop())
  const stuck = await openBare(server.http)
  const silent = await openBare(server.https) // sends no TLS handshake
  const at = { host: '127.0.0.1', port: Number(new URL(server.https).port), allowHalfOpen: true }
  const halfOpen = connectTls({ ...at, ca: server.ca, servername: 'localhost' }).on('error', () => {})
  t.after(() => {
    for (const socket of [stuck.socket, silent.socket, halfOpen]) socket.destroy()
  })
  await once(halfOpen, 'secureConnect')
  halfOpen.resume().end()
  const head = `POST ${group}/teams HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\n`
  stuck.socket.write(`${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"metadata":`)
  const wire = openWire(server)
  await eventually('the write is in flight', async () =>
    /^apiserver_current_inflight_requests\{request_kind="mutating"\} 1$/m.test((await wire('/metrics')).text),
  )
  const began = performance.now()
  await server.stop()
  const took = performance.now() - began
  assert.ok(took < longest, `${took} ms`)
})
