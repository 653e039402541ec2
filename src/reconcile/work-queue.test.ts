// The loop's times: what is far away is waited for, not worked on at once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { startLoop } from './work-queue.ts'

test('an item requeued for more than 24 days is not processed in a loop', async () => {
  let looked = 0
  const loop = startLoop({
    reconcile: async () => {
      looked++
      return 90 * 24 * 3600 * 1000
    },
    failed: (_, error) => assert.fail(String(error)),
  })
  loop.add('key')
  await wait(50)
  await loop.stop()
  assert.equal(looked, 1)
})
