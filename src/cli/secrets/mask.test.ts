// No value gets through, wherever the chunks end, and everything else does.

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

test('a value is masked in one piece, in many, at the end, line by line and without its line break', () => {
  assert.equal(through(['hunter2'], ['a hunter2 b']), 'a *** b')
  assert.equal(through(['hunter2'], ['a hun', 'te', 'r2']), 'a ***')
  assert.equal(through(['hunter2\n'], ['is hunter2.']), 'is ***.')
  assert.equal(through(['first line\nsecond line'], ['> first line\n> second line\n']), '> ***\n> ***\n')
  assert.equal(through(['hunter2', 'hunter22'], ['hunter22']), '***')
  assert.equal(through(['abc'], ['abc']), 'abc', 'what is so short is no secret')
})

test('wherever it is cut, no value comes out and nothing else is lost', () => {
  const text = 'one hunter2 two hunthunter2er2 hunter'
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 8 }), cuts => {
      const places = [0, ...cuts.toSorted((a, b) => a - b), text.length]
      const chunks = places.slice(1).map((end, at) => text.slice(places[at], end))
      assert.equal(through(['hunter2'], chunks), 'one *** two hunt***er2 hunter')
    }),
  )
})
