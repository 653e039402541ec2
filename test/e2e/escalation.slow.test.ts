// More of the proof in test/prove/escalation than escalation.test.ts takes, and bugs that need several steps in one order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gapsIn, runEscalation } from '../prove/escalation/run.ts'
import { huntBug } from '../prove/seeded-bugs.ts'

const seed = process.env['PROVE_SEED'] ?? 'slice'
const steps = 10_000

test(`${steps} steps of attackers with random objects: they never gain permissions (seed ${seed})`, {
  timeout: 600_000,
}, async context => {
  const tried = await runEscalation({ steps, seed: `${seed}/slow` })
  context.diagnostic(`${tried.worlds} worlds, ${JSON.stringify(tried.dangers)}`)
  assert.deepEqual(gapsIn(tried), [])
})

for (const name of [
  'D67: rotate an exchanged key',
  'D60: bind a role in a namespace without its rules',
  'R2: a dry run tells whether a key exists',
])
  test(`the prover finds a server with the bug "${name}" (seed ${seed})`, { timeout: 300_000 }, async context => {
    const { found, text, after, seconds } = await huntBug(name, seed)
    assert.ok(found, text)
    context.diagnostic(`${found} after ${after} steps, ${seconds.toFixed(1)} s: ${text}`)
  })
