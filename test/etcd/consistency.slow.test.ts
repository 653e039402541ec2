// A slice of the replicated proof in test/prove: three replicas on three etcd members, with faults, and a seeded bug that it finds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runReplicatedInChild } from '../prove/replicated/in-child.ts'
import { huntOnReplicas } from '../prove/seeded-bugs.ts'

const seed = process.env['PROVE_SEED'] ?? String(Date.now())

test(`requests to three replicas fit one order of writes, whatever is killed, paused or cut off (seed ${seed})`, {
  timeout: 300_000,
}, async context => {
  const faults = ['kill a member', 'pause a replica', 'cut off a replica', 'kill a replica'] as const
  const report = await runReplicatedInChild({ seed, operations: 8000, faults })
  assert.deepEqual(report.violations, [])
  context.diagnostic(`${report.requests} requests, ${report.events} events, ${report.watches} watches`)
})

test(`the prover finds a controller that runs on every replica (seed ${seed})`, { timeout: 300_000 }, async () => {
  const { found, text } = await huntOnReplicas('a controller on every replica', seed)
  assert.ok(found, text)
})
