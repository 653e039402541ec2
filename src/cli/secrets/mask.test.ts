// Masking works across chunk boundaries and changes nothing else.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { maskOf } from './mask.ts'

const through = (values: readonly string[], chunks: readonly string[]) => {
  const mask = maskOf(values.map(value => Buffer.from(value)))
  return [...chunks.map(chunk => mask(Buffer.from(chunk))), mask(undefined)]
    .map(one => Buffer.from(one).toString())
    .join('')
}

test('a value is masked whole, split over chunks, at the end, per line and without its final line break', () => {
  assert.equal(through(['hunter2'], ['a hunter2 b']), 'a *** b')
  assert.equal(through(['hunter2'], ['a hun', 'te', 'r2']), 'a ***')
  assert.equal(through(['hunter2\n'], ['is hunter2.']), 'is ***.')
  assert.equal(through(['first line\nsecond line'], ['> first line\n> second line\n']), '> ***\n> ***\n')
  assert.equal(through(['hunter2', 'hunter22'], ['hunter22']), '***')
  assert.equal(through(['abc'], ['abc']), 'abc', 'short values are not masked')
})

test('no value passes at any chunk boundary, and all other output does', () => {
  const text = 'one hunter2 two hunthunter2er2 hunter'
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 8 }), cuts => {
      const offsets = [0, ...cuts.toSorted((a, b) => a - b), text.length]
      const chunks = offsets.slice(1).map((end, at) => text.slice(offsets[at], end))
      assert.equal(through(['hunter2'], chunks), 'one *** two hunt***er2 hunter')
    }),
  )
})
