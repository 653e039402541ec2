// Usage reports of keys: in batches, the newest use of each, retried after a failure and flushed at the end.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openUsageReporter } from './usage-reporter.ts'

type Uses = readonly { readonly uid: string; readonly time: number }[]

test('a key that is used often is reported once, with its newest use', async () => {
  const told: Uses[] = []
  let time = 0
  const reports = openUsageReporter({ send: async uses => void told.push(uses), now: () => ++time, failed: () => {} })
  for (let count = 0; count < 1000; count++) reports.used('a')
  reports.used('b')
  assert.equal(await reports.close(), 0)
  assert.deepEqual(told, [
    [
      { uid: 'a', time: 1000 },
      { uid: 'b', time: 1001 },
    ],
  ])
})

test('a failed report is sent again with the next one; many keys take several batches', async () => {
  const told: Uses[] = []
  const failures: unknown[] = []
  let isAway = true
  const reports = openUsageReporter({
    send: async uses => {
      if (isAway) throw new Error('away')
      told.push(uses)
    },
    now: () => 1,
    failed: error => {
      failures.push(error)
      isAway = false
    },
    every: 1,
  })
  for (let count = 0; count < 1200; count++) reports.used(`key-${count}`)
  while (told.flat().length < 1000) await new Promise(resolve => setImmediate(resolve))
  await reports.close()
  assert.equal(failures.length, 1)
  assert.equal(new Set(told.flat().map(({ uid }) => uid)).size, 1200)
  assert.ok(told.every(uses => uses.length <= 500))
})

test('an unreachable management API delays the end only briefly, and the number of unreported keys is known', async () => {
  const never = new Promise<void>(() => {})
  const reports = openUsageReporter({
    send: () => never,
    now: () => 1,
    failed: () => assert.fail(),
    every: 1,
    closeWithin: 20,
  })
  for (const uid of ['a', 'b']) reports.used(uid)
  assert.equal(await reports.close(), 2)
})
