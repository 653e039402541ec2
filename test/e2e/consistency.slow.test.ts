// A slice of the proof in test/prove: 10^5 requests of many clients fit one order of writes, and checks that find seeded bugs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkConsistency } from '../prove/check-consistency.ts'
import { huntBug } from '../prove/seeded-bugs.ts'
import { connectTo, operationsIn, runTraffic, strangeIn } from '../prove/traffic.ts'
import { startServer } from '../support/server.ts'

const seed = process.env['PROVE_SEED'] ?? String(Date.now())

test(`100,000 requests of 64 clients and their watches fit one order of writes (seed ${seed})`, {
  timeout: 300_000,
}, async context => {
  const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off'] })
  try {
    const recording = await runTraffic(connectTo({ url: server.http, key: server.adminKey }), {
      operations: 100_000,
      seed,
    })
    assert.deepEqual(checkConsistency(recording), [])
    assert.equal(strangeIn(recording), 0, 'every answer is one of 200, 201, 404 and 409')
    assert.ok(operationsIn(recording) >= 100_000)
    const told = recording.sessions.reduce((sum, session) => sum + session.told.length, 0)
    context.diagnostic(`${operationsIn(recording)} requests, ${told} events in ${recording.sessions.length} watches`)
  } finally {
    await server.kill()
  }
})

for (const name of ['skip the version check in the store', 'lose a DELETED', 'serve a stale object'])
  test(`the checks find a server that was changed to ${name} (seed ${seed})`, { timeout: 120_000 }, async context => {
    const { found, text, after, seconds } = await huntBug(name, seed)
    assert.ok(found, text)
    context.diagnostic(`${found} after ${after} requests, ${seconds.toFixed(1)} s: ${text}`)
  })
