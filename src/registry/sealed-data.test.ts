// Secret data is decoded before encryption and encoded again after it.
// Data that was encrypted as JSON is still readable (D72).

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Json } from '../api/object.ts'
import { packData, unpackData } from './sealed-data.ts'

const again = (value: Json) => JSON.parse(JSON.stringify(unpackData(packData(value)))) as unknown

test('maps of base64 survive a round trip in about their decoded size', () => {
  const bytes = fc.uint8Array({ maxLength: 40 }).map(one => Buffer.from(one).toString('base64'))
  fc.assert(
    fc.property(fc.dictionary(fc.string(), bytes), data => {
      assert.deepEqual(again(data), JSON.parse(JSON.stringify(data)))
    }),
  )
  const size = 100_000
  assert.ok(packData({ key: Buffer.alloc(size).toString('base64') }).length < size + 100)
})

test('other values survive a round trip: non-canonical base64, lists, strings, empty maps', () => {
  for (const value of [{ a: 'aGl=' }, { a: 'not base64' }, { a: 1 }, { a: null }, [], 'text', null, {}])
    assert.deepEqual(again(value), value)
  assert.deepEqual(Object.keys(unpackData(packData(JSON.parse('{"__proto__":"aGk="}'))) as object), ['__proto__'])
})

test('reads data that an older version encrypted as JSON', () => {
  assert.deepEqual(unpackData(Buffer.from('{"a":"aGk="}')), { a: 'aGk=' })
})

test('rejects lengths that do not match', () => {
  assert.throws(() => unpackData(packData({ a: 'aGk=' }).subarray(0, -1)))
})
