// Patterns of groups match as the equivalent regular expression does, and a hostile name does not take long.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { matchesPattern } from './group-pattern.ts'

test('a pattern matches like its regular expression', () => {
  const letters = fc.constantFrom('a', 'b', '*', '?', '.', '[')
  const texts = fc.array(letters, { maxLength: 12 }).map(one => one.join(''))
  const asRegExp = (pattern: string) =>
    new RegExp(`^${pattern.replace(/[.[]/g, '\\$&').replaceAll('*', '.*').replaceAll('?', '.')}$`, 's')
  fc.assert(
    fc.property(texts, texts, (pattern, text) => {
      assert.equal(matchesPattern(pattern, text), asRegExp(pattern).test(text))
    }),
    { numRuns: 5000 },
  )
})

test('a pattern with many stars ends', () => {
  assert.equal(matchesPattern('*a'.repeat(100), `${'a'.repeat(10_000)}b`), false)
  assert.equal(matchesPattern('team-*-dev', 'team-web-dev'), true)
  assert.equal(matchesPattern('team-?', 'team-ab'), false)
})
