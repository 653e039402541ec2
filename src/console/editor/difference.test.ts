// Tests of differences between objects.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { applyMergePatch } from '../../api/merge-patch.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import { changedPaths, conflicts, editable, mergePatch, pathText } from './difference.ts'

/** JSON without null members, which a merge patch cannot set. */
const json = fc.letrec<{ value: Json; object: JsonObject }>(tie => ({
  value: fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string(), { maxLength: 3 }), tie('object')),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'constructor', '__proto__'), tie('value'), { maxKeys: 4 }),
})).object

test('the patch between two objects turns one into the other; equal objects have none', () => {
  fc.assert(
    fc.property(json, json, (from, to) => {
      const patch = mergePatch(from, to)
      const patched = patch === undefined ? from : applyMergePatch(from, patch)
      assert.deepEqual(JSON.parse(JSON.stringify(patched)), JSON.parse(JSON.stringify(to)))
      assert.equal(mergePatch(to, to), undefined)
    }),
  )
})

test('changes of different fields do not conflict; of one field they do, unless both are equal', () => {
  const base = { spec: { a: '1', b: { c: '1' }, list: ['x'] } }
  const mine = { spec: { a: '2', b: { c: '1' }, list: ['x'] } }
  assert.deepEqual(conflicts(base, mine, { spec: { a: '1', b: { c: '2' }, list: ['x'] } }), [])
  assert.deepEqual(conflicts(base, mine, { spec: { a: '3', b: { c: '1' }, list: ['x'] } }), [['spec', 'a']])
  assert.deepEqual(conflicts(base, mine, { spec: { a: '2', b: { c: '1' }, list: ['x'] } }), [])
})

test('a removed parent conflicts with a changed child, in both directions', () => {
  const base = { spec: { b: { c: '1' } } }
  const changed = { spec: { b: { c: '2' } } }
  assert.deepEqual(conflicts(base, changed, { spec: {} }), [['spec', 'b', 'c']])
  assert.deepEqual(conflicts(base, { spec: {} }, changed), [['spec', 'b']])
})

test('a label with dots in its name is one key', () => {
  const labelled = (value: string) => ({ metadata: { labels: { 'app.example.org/tier': value } } })
  const [path = []] = conflicts(labelled('base'), labelled('mine'), labelled('theirs'))
  assert.equal(pathText(path), 'metadata.labels["app.example.org/tier"]')
})

test('a list is one value', () => {
  assert.deepEqual(changedPaths({ users: ['a', 'b'] }, { users: ['a', 'c'] }), [['users']])
})

test('the editor shows neither status, nor fields of the server, nor values that were not read', () => {
  const object = {
    kind: 'SharedSecret',
    apiVersion: 'v1',
    metadata: { name: 'a', uid: '1', resourceVersion: '2', managedFields: [], labels: { x: 'y' } },
    spec: { displayName: 'A', data: { password: '(omitted)' } },
    status: { conditions: [] },
  }
  assert.deepEqual(editable(object), {
    apiVersion: 'v1',
    kind: 'SharedSecret',
    metadata: { name: 'a', labels: { x: 'y' } },
    spec: { displayName: 'A' },
  })
})
