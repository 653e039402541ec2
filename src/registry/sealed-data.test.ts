// Secret data is sealed decoded, comes back as it was sent, and data that was sealed as JSON still opens (D72).

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Json } from '../api/object.ts'
import { packData, unpackData } from './sealed-data.ts'

const again = (value: Json) => JSON.parse(JSON.stringify(unpackData(packData(value)))) as unknown

test('maps of base64 come back as they were, in about as many bytes as they stand for', () => {
  const bytes = fc.uint8Array({ maxLength: 40 }).map(one => Buffer.from(one).toString('base64'))
  fc.assert(
    fc.property(fc.dictionary(fc.string(), bytes), data => {
      assert.deepEqual(again(data), JSON.parse(JSON.stringify(data)))
    }),
  )
  const size = 100_000
  assert.ok(packData({ key: Buffer.alloc(size).toString('base64') }).length < size + 100)
})

test('other values come back as well: text that is not canonical base64, lists, texts, nothing', () => {
  for (const value of [{ a: 'aGl=' }, { a: 'not base64' }, { a: 1 }, { a: null }, [], 'text', null, {}])
    assert.deepEqual(again(value), value)
  assert.deepEqual(Object.keys(unpackData(packData(JSON.parse('{"__proto__":"aGk="}'))) as object), ['__proto__'])
})

test('data that an older version sealed as JSON opens', () => {
  assert.deepEqual(unpackData(Buffer.from('{"a":"aGk="}')), { a: 'aGk=' })
})

test('lengths that do not fit are an error', () => {
  assert.throws(() => unpackData(packData({ a: 'aGk=' }).subarray(0, -1)))
})
