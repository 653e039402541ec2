// The gateway never sends a character to a cluster that could end a header line.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptBy } from '../../../test/support/heap.ts'
import type { Ready } from './backend.ts'
import { type Forwarding, requestOf, streamHeadersOf } from './upstream-request.ts'

const ready = { authorization: 'Bearer of-the-gateway' } as Ready

function asking({
  path = '/api/v1/pods',
  headers = [] as string[],
  server = 'https://cluster.example/base',
}): Forwarding {
  const request = { method: 'GET', headers: {}, rawHeaders: headers, socket: { remoteAddress: '127.0.0.1' } }
  const caller = { username: 'ada', groups: [], extra: {} }
  return {
    exchange: { request, auditId: 'a' },
    route: { path, query: '?watch=true' },
    principal: { caller },
    prefixes: { userPrefix: '', groupPrefix: '' },
    backend: { server },
    timeouts: { connect: 1 },
  } as unknown as Forwarding
}

test('an HTTP/2 request has the path, the headers and the identity', () => {
  const sent = streamHeadersOf(asking({ headers: ['Accept', 'text/x', 'X-A', '\tü'] }), ready)
  assert.equal(sent?.[':path'], '/base/api/v1/pods?watch=true')
  assert.equal(sent?.accept, 'text/x')
  assert.equal(sent?.['x-a'], '\tü')
  assert.equal(sent?.['impersonate-user'], 'ada')
})

for (const [what, asked] of [
  ['a path with a line end', { path: '/api\r\nX-A: b' }],
  ['a path with half a line end', { path: '/api\nX-A: b' }],
  ['a path with a zero', { path: '/api\0' }],
  ['a name with a line end', { headers: ['X-A: b\r\nX-C', 'd'] }],
  ['a value with a line end', { headers: ['X-A', 'b\r\nX-C: d'] }],
  ['a value with half a line end', { headers: ['X-A', 'b\rX-C: d'] }],
  ['a value with a zero', { headers: ['X-A', '\0'] }],
] as const)
  test(`${what} is not sent over HTTP/2, and is rejected over HTTP/1.1`, () => {
    const forwarding = asking(asked as { path?: string; headers?: string[] })
    assert.equal(streamHeadersOf(forwarding, ready), undefined)
    assert.throws(() => requestOf(forwarding, ready), { code: 400 })
  })

test('the gateway forgets the addresses of old clusters', async () => {
  const servers = 1000
  const bytes = await keptBy(() => {
    for (let at = 0; at < servers; at++) {
      const server = `https://c${at}.example/${'x'.repeat(10_000)}`
      assert.equal(
        requestOf(asking({ server }), ready).path,
        `${server.slice(server.indexOf('/', 8))}/api/v1/pods?watch=true`,
      )
    }
  })
  assert.ok(bytes < 5_000_000, `${bytes} bytes are kept for ${servers} addresses`)
  assert.equal(requestOf(asking({}), ready).path, '/base/api/v1/pods?watch=true')
})
