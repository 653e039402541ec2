// A bounded cache evicts the oldest entries and never the newest.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFifoCache } from './fifo-cache.ts'

test('evicts the oldest entries first, and keeps the newest whatever its size', () => {
  const cache = openFifoCache<string, number>(10, key => key.length)
  for (const [index, key] of ['aaaa', 'bbbb', 'cc'].entries()) cache.add(key, index)
  assert.deepEqual([cache.get('aaaa'), cache.get('bbbb'), cache.get('cc')], [0, 1, 2])
  cache.add('d', 3)
  assert.deepEqual([cache.get('aaaa'), cache.get('bbbb'), cache.get('d')], [undefined, 1, 3])
  cache.add('e'.repeat(100), 4)
  assert.deepEqual([cache.get('d'), cache.get('e'.repeat(100))], [undefined, 4])
})

test('keeps exactly the last entries that fit', () => {
  const cache = openFifoCache<number, number>(100, () => 1)
  for (let key = 0; key < 10_000; key++) cache.add(key, key)
  for (let key = 9900; key < 10_000; key++) assert.equal(cache.get(key), key)
  assert.equal(cache.get(9899), undefined)
})
