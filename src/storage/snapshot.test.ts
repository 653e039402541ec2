// Snapshots for lists at older revisions last no longer than the history.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { put, refusedNow, teams } from '../../test/conformance/store-samples.ts'
import { keptBy } from '../../test/support/heap.ts'
import { openMemoryStore } from './memory.ts'

test('a list at an older revision keeps no history in memory after the store dropped it', async () => {
  let time = 0
  const bytes = await keptBy(async () => {
    const store = openMemoryStore({ now: () => time, history: { minAgeMs: 1000, minEvents: 1 } })
    for (let index = 0; index < 10; index++) await store.commit([put('a', undefined, 'x'.repeat(1_000_000))])
    for (let revision = 2; revision < 11; revision++)
      assert.equal(store.list({ bucket: teams, revision, limit: 1 }).entries[0]?.revision, revision)
    for (let later = 0; later < 100; later++) {
      time += 1000
      await store.commit([put('a')])
    }
    refusedNow(() => store.list({ bucket: teams, revision: 10 }), 'compacted')
    return store
  })
  assert.ok(bytes < 2_000_000, `${bytes} bytes are kept`)
})
