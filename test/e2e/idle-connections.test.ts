// An idle connection keeps nothing of its last request in memory. The server runs in this process, so the test can measure it.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { growthBy } from '../support/heap.ts'
import { type Server, startServer } from '../support/server.ts'
import { type Bare, base, openBare } from '../support/wire.ts'

const connections = 30
/** The server parses the unknown field, but does not send it back. */
const body = JSON.stringify({
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SelfSubjectAccessReview',
  spec: { resourceAttributes: { verb: 'get', resource: 'teams' } },
  unknown: 'x'.repeat(1_500_000),
})

describe('an idle connection keeps nothing of its last request in memory', { timeout: 120_000 }, () => {
  let server: Server
  const opened: Bare[] = []
  before(async () => {
    server = await startServer({ storage: 'memory', inProcess: true })
  })
  after(async () => {
    for (const { socket } of opened) socket.destroy()
    await server.stop()
  })

  for (const scheme of ['http', 'https'] as const)
    test(scheme, async () => {
      const head = [
        `POST ${base}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1`,
        'Host: localhost',
        `Authorization: Bearer ${server.adminKey}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
      ]
      const review = async () => {
        const connection = await openBare(server[scheme], scheme === 'https' ? { ca: server.ca } : undefined)
        opened.push(connection)
        connection.socket.write(`${head.join('\r\n')}\r\n\r\n`)
        connection.socket.write(body)
        assert.match(await connection.until('"allowed":true'), /^HTTP\/1\.1 201 /)
      }
      await review() // loads the modules that a review needs
      const limit = (connections * body.length) / 4
      const growth = await growthBy(async () => {
        for (let count = 0; count < connections; count++) await review()
      }, limit)
      assert.ok(growth < limit, `${connections} idle connections keep ${growth} bytes`)
      assert.ok(opened.every(({ socket }) => !socket.destroyed && socket.readable))
    })
})
