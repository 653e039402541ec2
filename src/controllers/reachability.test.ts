// reaches: cycles are found, chains of any length are walked.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reaches } from './reachability.ts'

test('a chain of any length is walked without recursion', () => {
  const next = (one: number) => (one < 200_000 ? [one + 1] : [])
  assert.equal(reaches(0, 200_000, next), true)
  assert.equal(reaches(0, -1, next), false)
})

test('a cycle terminates, and reaches its start', () => {
  const next = (one: number) => [(one + 1) % 3]
  assert.equal(reaches(0, 0, next), true)
  assert.equal(reaches(0, 7, next), false)
})
