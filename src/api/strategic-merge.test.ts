// Strategic merge patch merges two lists by item, supports directives, and handles long lists.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Json } from './object.ts'
import { applyStrategicMerge } from './strategic-merge.ts'

const merged = (metadata: Json, patch: Json) => {
  const { metadata: result } = applyStrategicMerge({ metadata }, { metadata: patch }) as { metadata: Json }
  return JSON.parse(JSON.stringify(result)) as unknown
}

test('finalizers are a set: new ones are appended, existing ones keep their position', () => {
  assert.deepEqual(merged({ finalizers: ['a', 'b'] }, { finalizers: ['c', 'a', 'c'] }), { finalizers: ['a', 'b', 'c'] })
  assert.deepEqual(merged({ finalizers: ['a', 'b', 'c'] }, { '$deleteFromPrimitiveList/finalizers': ['b', 'x'] }), {
    finalizers: ['a', 'c'],
  })
})

test('owner references are merged by uid, deleted by uid, and appended', () => {
  const ownerReferences = [
    { uid: '1', name: 'one' },
    { uid: '2', name: 'two' },
    { uid: '3', name: 'three' },
  ]
  const patch = [
    { uid: '3', controller: true },
    { uid: '1', $patch: 'delete' },
    { uid: '4', name: 'four' },
    { uid: '4', controller: true },
    { uid: '9', $patch: 'delete' },
    { uid: '1', name: 'again' },
  ]
  assert.deepEqual(merged({ ownerReferences }, { ownerReferences: patch }), {
    ownerReferences: [
      { uid: '2', name: 'two' },
      { uid: '3', name: 'three', controller: true },
      { uid: '4', name: 'four', controller: true },
      { uid: '1', name: 'again' },
    ],
  })
})

test('$retainKeys keeps the named keys only', () => {
  assert.deepEqual(merged({ a: 1, b: 2 }, { $retainKeys: ['a'] }), { a: 1 })
})
