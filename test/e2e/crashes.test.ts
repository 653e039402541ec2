// A slice of the proof in test/prove: 30 deaths of a whole server under eight writers and a watch that goes on.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCrashes } from '../prove/crashes.ts'
import { runStoreCrashes } from '../prove/store-crashes.ts'

const seed = process.env['PROVE_SEED'] ?? String(Date.now())
const kills = 30

test(`a server that dies ${kills} times keeps every acknowledged write, halves none, and its watch goes on without a gap (seed ${seed})`, {
  timeout: 600_000,
}, async context => {
  const { writes, events } = await runCrashes(kills, seed)
  context.diagnostic(`${writes} acknowledged writes, ${events} events`)
  assert.ok(writes > kills, `${writes} writes`)
})

test(`a bare store that is killed 200 times keeps what it acknowledged (seed ${seed})`, {
  timeout: 600_000,
}, async context => {
  const writes = await runStoreCrashes({ kills: 200, seed })
  context.diagnostic(`${writes} acknowledged writes`)
  assert.ok(writes > 200, `${writes} writes`)
})
