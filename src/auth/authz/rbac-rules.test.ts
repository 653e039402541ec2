// Rules: what of a rule is not held, at a cost that does not grow with the product of its lists (D27).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missingRules } from './rbac-rules.ts'

const words = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`)

test('a rule that stands for millions of parts is held by one rule that covers it, or missing as a whole', () => {
  const large = { verbs: words(1000), apiGroups: words(1000), resources: words(1000) }
  const started = performance.now()
  assert.deepEqual(missingRules([{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }], [large]), [])
  assert.deepEqual(missingRules([large], [large]), [])
  assert.deepEqual(missingRules([{ ...large, verbs: ['get'] }], [large]), [large])
  assert.ok(performance.now() - started < 2000)
})

test('of a small rule the parts that are not held are told, several rules together may hold it', () => {
  const wanted = { verbs: ['get', 'list'], apiGroups: ['a'], resources: ['b', 'c/d'] }
  const held = [
    { verbs: ['get'], apiGroups: ['a'], resources: ['b', '*/d'] },
    { verbs: ['list'], apiGroups: ['*'], resources: ['b'], resourceNames: ['one'] },
    { verbs: ['*'], apiGroups: ['a'], resources: ['c/d'] },
  ]
  assert.deepEqual(missingRules(held, [wanted]), [{ verbs: ['list'], apiGroups: ['a'], resources: ['b'] }])
})
