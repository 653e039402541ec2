// A slice of the proof in test/prove: requests that no client would send, texts that nobody would write, clients that hold what they are given;
// and by name what such runs have found.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { floods, runFlood } from '../prove/flooding-clients.ts'
import { runRawFuzz } from '../prove/raw-fuzz.ts'
import { runShapeFuzz } from '../prove/shape-fuzz.ts'
import { type Server, startServer } from '../support/server.ts'
import { openBare } from '../support/wire.ts'

const seed = process.env['PROVE_SEED'] ?? String(Date.now())

describe(`a server with hostile clients (seed ${seed})`, { timeout: 240_000 }, () => {
  let server: Server
  before(async () => {
    server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off', '--limits-unknown-keys', '0'] })
  })
  after(() => server.stop())

  test('20,000 generated requests over bare sockets: each gets a response, none a 500, and nothing is left behind', async context => {
    const { requests, answers, problems } = await runRawFuzz(server, 20_000, seed)
    assert.deepEqual(problems, [])
    context.diagnostic(`${requests} requests: ${JSON.stringify(answers)}`)
  })

  for (const name of Object.keys(floods))
    test(`${name}: other clients are served meanwhile, and nothing is left behind`, async context => {
      const { size, slowest, problems } = await runFlood(server, name, 0.25)
      assert.deepEqual(problems, [])
      context.diagnostic(`${size}; the slowest ordinary request took ${Math.round(slowest)} ms`)
    })

  test('found: a 100 Continue of a pipelined request is never between the head and the body of a response', async () => {
    const bare = await openBare(server.http)
    const ask = (more: string) => `GET /nowhere HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
    const waiting = `${ask('Expect: 100-continue\r\nContent-Length: 1\r\n')}x`
    bare.socket.write(`${ask('')}${waiting}${ask('Connection: close\r\n')}`)
    const text = await bare.ended()
    assert.doesNotMatch(text, /\r\n\r\nHTTP\/1\.1 100/)
    assert.match(text, /^HTTP\/1\.1 4\d\d /)
  })

  test('found: an HTTP/0.9 request gets a normal response', async () => {
    const bare = await openBare(server.http)
    const head = `Host: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\nConnection: close`
    bare.socket.write(`GET /kubernetes/management/apis HTTP/0.9\r\n${head}\r\n\r\n`)
    assert.match(await bare.ended(), /^HTTP\/1\.1 200 /)
  })

  test('found: apply responds 400 if an apiVersion, a kind or a name is not a string', async () => {
    const path = '/apis/management.platform.sh/v1/teams/a?fieldManager=m'
    const whole = { apiVersion: 'management.platform.sh/v1', kind: 'Team', metadata: { name: 'a' } }
    for (const wrong of [{ apiVersion: {} }, { kind: [{}] }, { metadata: { name: {} } }]) {
      const headers = { 'content-type': 'application/apply-patch+yaml' }
      const { status, text } = await server.request('PATCH', path, { body: { ...whole, ...wrong }, headers })
      assert.equal(status, 400, text)
    }
  })
})

test(`500 mutated texts for every parser: each is parsed or rejected, none crashes (seed ${seed})`, async () => {
  for (const { name, problems } of await runShapeFuzz(500, seed)) assert.deepEqual(problems, [], name)
})
