// A request on a connection that Node has paused. The handler blocks its thread, so this test is not beside others.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { makeAuthority } from './certificate.ts'
import { type Handle, type Listener, listenHttp, listenHttps } from './listener.ts'
import { ownCertificate } from './tls.ts'

const authority = makeAuthority(Date.now())
const address = { host: '127.0.0.1', port: 0 }
const https = (handle: Handle) =>
  listenHttps(address, ownCertificate(authority, ['localhost', '127.0.0.1'], Date.now), handle)
const http = (handle: Handle) => listenHttp(address, handle)
const tls = { ca: authority.certificate, servername: 'localhost' }
const at = ({ url }: Listener) => ({ host: '127.0.0.1', port: Number(new URL(url).port) })

/** A client in another thread: reads a whole response, sends the next request at once, and says so. Ends with the number of responses. */
const nextRequests = `
const { parentPort, workerData: { sent, to, scheme } } = require('node:worker_threads')
const socket = scheme === 'https' ? require('node:tls').connect(to) : require('node:net').connect(to)
let [count, size] = [0, 0]
const request = () => socket.write('GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n', () => {
  Atomics.add(sent, 0, 1)
  Atomics.notify(sent, 0)
})
socket.once(scheme === 'https' ? 'secureConnect' : 'connect', request)
socket.on('data', chunk => {
  size += chunk.length
  if (size < 100_000) return
  size = 0
  if (++count === 5) {
    Atomics.add(sent, 0, 1)
    Atomics.notify(sent, 0)
    parentPort.postMessage(count)
  } else request()
})
`

for (const [scheme, listen] of [
  ['http', http],
  ['https', https],
] as const)
  test(`${scheme}: a request that arrives before Node knows that the last response is written is read`, async context => {
    const sent = new Int32Array(new SharedArrayBuffer(4))
    const own = await listen((_, response) => {
      // In this phase of the event loop, Node learns only after the next input that the response is written.
      setImmediate(() => {
        const before = Atomics.load(sent, 0)
        response.end(Buffer.alloc(100_000, 'a'))
        Atomics.wait(sent, 0, before, 10_000)
      })
    })
    context.after(() => own.close(0))
    const client = new Worker(nextRequests, { eval: true, workerData: { sent, to: { ...at(own), ...tls }, scheme } })
    context.after(() => client.terminate())
    assert.deepEqual(await once(client, 'message'), [5])
  })
