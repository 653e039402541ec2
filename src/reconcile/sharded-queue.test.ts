// The sharded queue: back-off and its reset.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ApiError } from '../api/errors.ts'
import { startShardedQueue } from './sharded-queue.ts'

test('resetBackoff clears the delay of earlier failures', { timeout: 120_000 }, async () => {
  let isDown = true
  let tries = 0
  const done = Promise.withResolvers<void>()
  const queue = startShardedQueue({
    shards: 2,
    work: async () => {
      tries++
      if (isDown) throw new Error('unreachable')
      if (queue.failing.get('a')?.attempts === 0) throw new Error('a last one')
      done.resolve()
      return undefined
    },
    failed: () => {},
    random: () => 0.5,
  })
  while (tries < 12) {
    queue.add('a')
    await queue.idle()
  }
  assert.equal(queue.failing.get('a')?.attempts, 12) // the next retry would be in a minute
  isDown = false
  queue.resetBackoff('a')
  queue.add('a')
  await queue.idle()
  assert.equal(queue.failing.get('a')?.attempts, 1)
  await done.promise
  await queue.idle()
  assert.equal(queue.failing.size, 0)
  await queue.stop()
})

test('retryAfterSeconds is respected, up to five minutes', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let tries = 0
  let retryAfterSeconds = 20
  const queue = startShardedQueue({
    shards: 1,
    work: async () => {
      tries++
      throw new ApiError(429, '', 'not now', { details: { retryAfterSeconds } })
    },
    failed: () => {},
    random: () => 0,
  })
  const pass = async (milliseconds: number) => {
    t.mock.timers.tick(milliseconds)
    for (let n = 0; n < 10; n++) await turn()
  }
  queue.add('a')
  await pass(0)
  await pass(19_999)
  assert.equal(tries, 1)
  retryAfterSeconds = 999_999
  await pass(1)
  assert.equal(tries, 2)
  await pass(299_999)
  assert.equal(tries, 2)
  await pass(1)
  assert.equal(tries, 3)
  await queue.stop()
})
