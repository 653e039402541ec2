// The ordered set, compared with a plain sorted array, with enough keys to split and merge chunks.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addKey, nextKey, rankOf, removeKey, sortedKeys, unionOf, walkFrom } from './sorted-keys.ts'

/** A key for a number, in an order that looks random. */
const name = (n: number) => `k${((n * 7919) % 4001).toString(36)}`

test('adding, removing, ranking and walking agree with a sorted array', () => {
  // Adds or removes runs of neighbours, because single changes would never empty a chunk.
  const change = fc.record({
    from: fc.nat(4000),
    count: fc.integer({ min: 1, max: 900 }),
    add: fc.boolean(),
    inOrder: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), fc.nat(4000), (changes, probe) => {
      const keys = sortedKeys()
      const naive = new Set<string>()
      for (const { from, count, add, inOrder } of changes) {
        for (let n = from; n < from + count; n++) {
          const key = inOrder ? String(n).padStart(5, '0') : name(n)
          if (add) addKey(keys, key)
          else removeKey(keys, key)
          if (add) naive.add(key)
          else naive.delete(key)
        }
      }
      const sorted = [...naive].sort()
      assert.equal(keys.size, sorted.length)
      for (const start of ['', name(probe), String(probe).padStart(5, '0'), 'z']) {
        const expected = sorted.filter(key => key >= start)
        assert.equal(rankOf(keys, start), sorted.length - expected.length)
        const walk = walkFrom(keys, start)
        assert.deepEqual(
          Array.from(expected, () => nextKey(walk)),
          expected,
        )
        assert.equal(nextKey(walk), undefined)
      }
    }),
    { numRuns: 200 },
  )
})

test('a walk ends before its end', () => {
  const keys = sortedKeys()
  for (let n = 0; n < 2000; n++) addKey(keys, String(n).padStart(5, '0'))
  for (const [start, end, first] of [
    ['00510', '00514', '00510'],
    ['00000', '00000', undefined],
    ['01999', '02999', '01999'],
  ] as const) {
    const walk = walkFrom(keys, start, end)
    const found: (string | undefined)[] = []
    for (let key = nextKey(walk); key !== undefined; key = nextKey(walk)) found.push(key)
    assert.equal(found[0], first)
    assert.equal(found.length, Math.min(Number(end), 2000) - Number(start))
  }
})

test('several walks together give each key once, in order', () => {
  const sets = fc.array(fc.uniqueArray(fc.integer({ min: 0, max: 30 })), { maxLength: 9 })
  fc.assert(
    fc.property(sets, lists => {
      const walks = lists.map(list => {
        const keys = sortedKeys()
        for (const n of list) addKey(keys, name(n))
        return walkFrom(keys, '')
      })
      const found: string[] = []
      const next = unionOf(walks)
      for (let key = next(); key !== undefined; key = next()) found.push(key)
      assert.deepEqual(found, [...new Set(lists.flat().map(name))].sort())
    }),
    { numRuns: 500 },
  )
})
