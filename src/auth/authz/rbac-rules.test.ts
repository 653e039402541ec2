// Rules: what of a rule is not held, at a cost that does not grow with the product of its lists (D27).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts'
import { missingRules } from './rbac-rules.ts'

const words = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`)

test('a rule with millions of parts is covered by a single rule, or missing as a whole', () => {
  const large = { verbs: words(1000), apiGroups: words(1000), resources: words(1000) }
  const used = cpuMilliseconds(() => {
    assert.deepEqual(missingRules([{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }], [large]), [])
    assert.deepEqual(missingRules([large], [large]), [])
    assert.deepEqual(missingRules([{ ...large, verbs: ['get'] }], [large]), [large])
  })
  assert.ok(used < 2000, `${used} ms`)
})

test('the missing parts of a rule are listed; several rules together may cover it', () => {
  const wanted = { verbs: ['get', 'list'], apiGroups: ['a'], resources: ['b', 'c/d'] }
  const held = [
    { verbs: ['get'], apiGroups: ['a'], resources: ['b', '*/d'] },
    { verbs: ['list'], apiGroups: ['*'], resources: ['b'], resourceNames: ['one'] },
    { verbs: ['*'], apiGroups: ['a'], resources: ['c/d'] },
  ]
  assert.deepEqual(missingRules(held, [wanted]), [{ verbs: ['list'], apiGroups: ['a'], resources: ['b'] }])
})
