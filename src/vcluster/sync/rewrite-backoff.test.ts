// Back-off of an object that a server keeps changing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRewriteBackoff } from './rewrite-backoff.ts'

test('the first three passes are immediate, then the delay grows up to 30 seconds', () => {
  const { next } = openRewriteBackoff(() => 0)
  const delays = Array.from({ length: 14 }, () => next('a', true, '1'))
  assert.deepEqual(delays.slice(0, 7), [0, 0, 0, 200, 400, 800, 1600])
  assert.equal(delays.at(-1), 30_000)
  assert.equal(next('a', false, '1'), undefined)
  assert.equal(next('a', true, '1'), 0, 'the back-off is reset')
})

test('remaining returns the rest of the delay, by the injected clock', () => {
  let tick = 1000
  const { remaining, next } = openRewriteBackoff(() => tick)
  for (let turn = 0; turn < 4; turn++) next('a', true, '1')
  assert.equal(remaining('a', '1'), 200)
  assert.equal(remaining('b', '1'), 0)
  tick += 150
  assert.equal(remaining('a', '1'), 50)
  tick += 100
  assert.equal(remaining('a', '1'), 0)
})

test('a new version has no delay and resets the back-off', () => {
  const { remaining, next } = openRewriteBackoff(() => 0)
  for (let turn = 0; turn < 9; turn++) next('a', true, '1')
  assert.ok(remaining('a', '1') > 0)
  assert.equal(remaining('a', '2'), 0)
  assert.equal(next('a', true, '2'), 0)
})
