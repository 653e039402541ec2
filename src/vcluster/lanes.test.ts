// The lanes by themselves: what failures earn, and when that is forgotten.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startLanes } from './lanes.ts'

test('failures that are forgiven do not make the next one wait', { timeout: 20_000 }, async () => {
  let isAway = true
  let tries = 0
  const done = Promise.withResolvers<void>()
  const lanes = startLanes({
    lanes: 2,
    work: async () => {
      tries++
      if (isAway) throw new Error('away')
      if (lanes.failing.get('a')?.attempts === 0) throw new Error('a last one')
      done.resolve()
      return undefined
    },
    failed: () => {},
    random: () => 0.5,
  })
  while (tries < 12) {
    lanes.add('a')
    await lanes.idle()
  }
  assert.equal(lanes.failing.get('a')?.attempts, 12) // the next try is a minute away
  isAway = false
  lanes.forgive('a')
  lanes.add('a')
  await lanes.idle()
  assert.equal(lanes.failing.get('a')?.attempts, 1)
  await done.promise
  await lanes.idle()
  assert.equal(lanes.failing.size, 0)
  await lanes.stop()
})
