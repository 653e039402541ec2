// The back-off from objects that others keep changing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRestoreBackoff } from './restore-backoff.ts'

test('the first writes are immediate, then the delay grows up to 30 seconds; a new content resets it', () => {
  let time = 0
  const backoff = openRestoreBackoff(() => time)
  const delays = Array.from({ length: 15 }, () => {
    backoff.wrote('a', 'one')
    return backoff.remaining('a', 'one')
  })
  assert.deepEqual(delays.slice(0, 8), [0, 0, 0, 0, 0, 200, 400, 800])
  assert.equal(delays.at(-1), 30_000)
  assert.equal(backoff.isContested('a'), true)
  assert.equal(backoff.remaining('a', 'two'), 0)
  assert.equal(backoff.remaining('b', 'one'), 0)
  time += 10_000
  assert.equal(backoff.remaining('a', 'one'), 20_000)
  backoff.wrote('b', 'one')
  time += 75_000
  assert.deepEqual(backoff.prune(), [])
  assert.equal(backoff.isContested('a'), true)
  time += 10_000
  assert.deepEqual(backoff.prune(), ['a'])
  assert.equal(backoff.isContested('a'), false)
})
