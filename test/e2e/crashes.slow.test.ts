// A part of the proof in test/prove: 30 kills of a server with eight writers and a resuming watch, and 200 kills of bare stores.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runCrashes } from '../prove/crashes.ts'
import { runStoreCrashes } from '../prove/store-crashes.ts'

const seed = process.env['PROVE_SEED'] ?? String(Date.now())
const kills = 30
const servers = 2
const storeKills = 200
const stores = 2

// A test that waits for kills leaves a core to the others.
describe('crashes', { concurrency: true, timeout: 600_000 }, () => {
  test(`servers that are killed ${kills} times keep every acknowledged write, no partial one, and watches resume without a gap (seed ${seed})`, async context => {
    const each = Array.from({ length: servers }, (_, index) => runCrashes(kills / servers, `${seed}/${index}`))
    const outcomes = await Promise.all(each)
    for (const { kills: died, writes, events } of outcomes) {
      context.diagnostic(`${died} deaths, ${writes} acknowledged writes, ${events} events`)
      assert.ok(writes > died, `${writes} writes`)
    }
    // A place of the storage thread among them: about every third death is at one.
    const at = outcomes.flatMap(one => one.at)
    assert.ok(
      at.some(place => /append|commit|checkpoint|compaction/.test(place)),
      at.join(', '),
    )
  })

  test(`bare stores that are killed ${storeKills} times keep acknowledged writes (seed ${seed})`, async context => {
    const each = Array.from({ length: stores }, (_, index) =>
      runStoreCrashes({ kills: storeKills / stores, seed: `${seed}/${index}` }),
    )
    const writes = (await Promise.all(each)).reduce((sum, one) => sum + one)
    context.diagnostic(`${writes} acknowledged writes`)
    assert.ok(writes > storeKills, `${writes} writes`)
  })
})
