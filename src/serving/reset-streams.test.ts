// HTTP/2 streams that a client resets with NO_ERROR while data waits for its flow-control window.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { test } from 'node:test'
import { makeAuthority } from './certificate.ts'
import { type Handle, listenHttps } from './listener.ts'
import { ownCertificate } from './tls.ts'

const authority = makeAuthority(Date.now())
const tls = { ca: authority.certificate, servername: 'localhost' }

/** One byte at least waits: the window of a stream is 0. */
const window = { initialWindowSize: 0 }
const cases: { readonly name: string; readonly method: 'GET' | 'POST'; readonly handle: Handle }[] = [
  {
    name: 'of a response that continues, such as a watch',
    method: 'GET',
    handle: (_, response) => void response.writeHead(200).write('{}\n'),
  },
  {
    name: 'of a response that is complete',
    method: 'GET',
    handle: (_, response) => void response.writeHead(200).end('{}'),
  },
  {
    name: 'of a request whose body nobody reads',
    method: 'POST',
    handle: (_, response) => void response.writeHead(401).end('{}'),
  },
]

for (const { name, method, handle } of cases)
  test(`a reset without an error frees the stream ${name}`, async context => {
    const closed: Promise<unknown>[] = []
    const server = await listenHttps(
      { host: '127.0.0.1', port: 0 },
      ownCertificate(authority, ['localhost', '127.0.0.1'], Date.now),
      (request, response) => {
        closed.push(once(response, 'close'))
        handle(request, response)
      },
    )
    context.after(() => server.close(0))
    const session = connectHttp2(server.url, { ...tls, settings: window })
    context.after(() => session.destroy())
    const streams = Array.from({ length: 20 }, () => session.request({ ':path': '/', ':method': method }))
    await Promise.all(streams.map(stream => once(stream, 'response')))
    for (const stream of streams) stream.close()
    assert.equal(closed.length, streams.length)
    await Promise.all(closed)
  })
