// More of the proof in test/prove/escalation than escalation.test.ts takes, and bugs that need several steps in one order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { begin } from '../prove/begin-bug.ts'
import { runInChild } from '../prove/escalation/in-child.ts'
import { gapsIn, runEscalation } from '../prove/escalation/run.ts'

const seed = process.env['PROVE_SEED'] ?? 'slice'
const steps = 10_000

test(`${steps} steps of attackers with random objects: they never gain permissions (seed ${seed})`, {
  timeout: 600_000,
}, async context => {
  const tried = await runEscalation({ steps, seed: `${seed}/slow` })
  context.diagnostic(`${tried.worlds} worlds, ${JSON.stringify(tried.dangers)}`)
  assert.deepEqual(gapsIn(tried), [])
})

/** A number of steps, not a time: the machine may be busy. Each bug is found after fewer than 3,000 with this seed. */
const hunt = { seed: process.env['PROVE_SEED'] ?? 'b', steps: 20_000 }

for (const name of [
  'D67: rotate an exchanged key',
  'D60: bind a role in a namespace without its rules',
  'R2: a dry run tells whether a key exists',
])
  test(`the prover finds a server with the bug "${name}" (seed ${hunt.seed})`, { timeout: 600_000 }, async context => {
    const { steps: after, seconds, violation } = await runInChild(hunt, begin(name))
    assert.ok(violation, `nothing was noticed in ${after} steps`)
    context.diagnostic(`${violation.invariant} after ${after} steps, ${seconds.toFixed(1)} s: ${violation.text}`)
  })
