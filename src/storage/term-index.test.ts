// The term index, compared with plain sets.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nextKey, walkFrom } from './sorted-keys.ts'
import { keysOf, reindex, type TermIndex } from './term-index.ts'

const terms = ['a', 'b', 'c']

test('keys that change terms are found under their current terms, and empty terms are removed', () => {
  const move = fc.record({ key: fc.constantFrom('k', 'l', 'm', 'n'), to: fc.array(fc.constantFrom(...terms)) })
  fc.assert(
    fc.property(fc.array(move, { maxLength: 20 }), moves => {
      const index: TermIndex = new Map()
      const plain = new Map<string, readonly string[]>()
      for (const { key, to } of moves) {
        reindex(index, key, plain.get(key) ?? [], to)
        plain.set(key, to)
      }
      for (const term of terms) {
        const expected = [...plain.keys()].filter(key => plain.get(key)?.includes(term)).sort()
        const keys = keysOf(index, term)
        const found: string[] = []
        const walk = keys && walkFrom(keys, '')
        for (let key = walk && nextKey(walk); walk && key !== undefined; key = nextKey(walk)) found.push(key)
        assert.deepEqual(found, expected)
        assert.equal(keys?.size ?? 0, expected.length)
        assert.equal(index.has(term), expected.length > 0)
      }
    }),
    { numRuns: 500 },
  )
})
