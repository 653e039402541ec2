// The lanes by themselves: what failures earn, and when that is forgotten.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ApiError } from '../../api/errors.ts'
import { startLanes } from './sharded-queue.ts'

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
  lanes.resetBackoff('a')
  lanes.add('a')
  await lanes.idle()
  assert.equal(lanes.failing.get('a')?.attempts, 1)
  await done.promise
  await lanes.idle()
  assert.equal(lanes.failing.size, 0)
  await lanes.stop()
})

test('a server is left alone for as long as it asks, and for five minutes at most', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let tries = 0
  let asks = 20
  const lanes = startLanes({
    lanes: 1,
    work: async () => {
      tries++
      throw new ApiError(429, '', 'not now', { details: { retryAfterSeconds: asks } })
    },
    failed: () => {},
    random: () => 0,
  })
  const pass = async (milliseconds: number) => {
    t.mock.timers.tick(milliseconds)
    for (let n = 0; n < 10; n++) await turn()
  }
  lanes.add('a')
  await pass(0)
  await pass(19_999)
  assert.equal(tries, 1)
  asks = 999_999
  await pass(1)
  assert.equal(tries, 2)
  await pass(299_999)
  assert.equal(tries, 2)
  await pass(1)
  assert.equal(tries, 3)
  await lanes.stop()
})
