// Tests reachableFrom with long chains and cycles.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reachableFrom } from './reachability.ts'

test('a long chain is walked without recursion', () => {
  const reached = reachableFrom(0, one => (one < 200_000 ? [one + 1] : []))
  assert.equal(reached.has(200_000), true)
  assert.equal(reached.has(-1), false)
})

test('a walk around a cycle ends', () => {
  assert.deepEqual([...reachableFrom(0, one => [(one + 1) % 3])], [0, 1, 2])
})
