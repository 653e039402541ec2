// A bounded map lets the oldest go, and never the newest.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openNewest } from './fifo-cache.ts'

test('what fits is kept, the oldest goes first, and the newest stays however large it is', () => {
  const newest = openNewest<string, number>(10, key => key.length)
  for (const [index, key] of ['aaaa', 'bbbb', 'cc'].entries()) newest.add(key, index)
  assert.deepEqual([newest.get('aaaa'), newest.get('bbbb'), newest.get('cc')], [0, 1, 2])
  newest.add('d', 3)
  assert.deepEqual([newest.get('aaaa'), newest.get('bbbb'), newest.get('d')], [undefined, 1, 3])
  newest.add('e'.repeat(100), 4)
  assert.deepEqual([newest.get('d'), newest.get('e'.repeat(100))], [undefined, 4])
})

test('after very many it keeps exactly the last that fit', () => {
  const newest = openNewest<number, number>(100, () => 1)
  for (let key = 0; key < 10_000; key++) newest.add(key, key)
  for (let key = 9900; key < 10_000; key++) assert.equal(newest.get(key), key)
  assert.equal(newest.get(9899), undefined)
})
