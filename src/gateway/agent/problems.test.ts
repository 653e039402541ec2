// The reports of the agent: a bounded list of problems, and the version up to which it is done.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maxProblems } from '../../kinds/cluster.ts'
import { openAppliedVersion } from './applied-version.ts'
import { openProblems } from './problems.ts'

test('at most 200 problems are reported, and the last one counts the others', () => {
  let changes = 0
  const problems = openProblems(() => changes++)
  for (let n = 0; n < maxProblems; n++) assert.equal(problems.set(`key ${n}`, [{ reason: 'Forbidden' }]), true)
  assert.equal(problems.list().length, maxProblems)
  assert.ok(problems.list().every(({ reason }) => reason === 'Forbidden'))
  problems.set('one more', [{ reason: 'Forbidden' }])
  assert.equal(problems.list().length, maxProblems)
  assert.match(problems.list().at(-1)?.message ?? '', /^2 more problems/)
  assert.equal(problems.size, maxProblems + 1)
  changes = 0
  assert.equal(problems.set('one more', [{ reason: 'Forbidden' }]), false)
  assert.equal(changes, 0)
  assert.equal(problems.set('one more', []), true)
  assert.equal(problems.has('one more'), false)
})

test('the applied version is the one before the oldest change that is not applied', () => {
  const applied = openAppliedVersion()
  applied.seen('5')
  assert.equal(applied.current(), '5')
  applied.changed('a')
  applied.seen('6')
  applied.changed('b')
  applied.seen('7')
  assert.equal(applied.current(), '5')
  const a = applied.begin('a')
  assert.equal(applied.begin('b')(), true)
  assert.equal(applied.current(), '5')
  applied.changed('a')
  applied.seen('8')
  assert.equal(a(), false, 'it has changed meanwhile')
  assert.equal(applied.current(), '5')
  assert.equal(applied.begin('a')(), true)
  assert.equal(applied.current(), '8')
  assert.equal(applied.begin('a')(), false)
})
