// How long a name waits for its next turn.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRewriteBackoff } from './rewrite-backoff.ts'

test('at once three times, then ever more slowly, up to half a minute', () => {
  const { next } = openRewriteBackoff(() => 0)
  const delays = Array.from({ length: 14 }, () => next('a', true, '1'))
  assert.deepEqual(delays.slice(0, 7), [0, 0, 0, 200, 400, 800, 1600])
  assert.equal(delays.at(-1), 30_000)
  assert.equal(next('a', false, '1'), undefined)
  assert.equal(next('a', true, '1'), 0, 'it begins anew')
})

test('who comes early waits for the rest of it, by the clock that is handed in', () => {
  let tick = 1000
  const { early, next } = openRewriteBackoff(() => tick)
  for (let turn = 0; turn < 4; turn++) next('a', true, '1')
  assert.equal(early('a', '1'), 200)
  assert.equal(early('b', '1'), 0)
  tick += 150
  assert.equal(early('a', '1'), 50)
  tick += 100
  assert.equal(early('a', '1'), 0)
})

test('what somebody changed does not wait, and has its turns before it', () => {
  const { early, next } = openRewriteBackoff(() => 0)
  for (let turn = 0; turn < 9; turn++) next('a', true, '1')
  assert.ok(early('a', '1') > 0)
  assert.equal(early('a', '2'), 0)
  assert.equal(next('a', true, '2'), 0)
})
