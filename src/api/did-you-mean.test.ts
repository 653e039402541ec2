// Suggestions for typing mistakes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, didYouMeanOneOf } from './did-you-mean.ts'

test('never suggests the word itself', () => {
  assert.equal(didYouMean('server', ['server']), '')
  assert.equal(didYouMean('server', ['server', 'serve']), '; did you mean serve?')
  assert.equal(didYouMean('Server', ['server']), '; did you mean server?')
})

test('after a list of choices, suggests one of several, but not the only one', () => {
  assert.equal(didYouMeanOneOf('sever', ['server']), '')
  assert.equal(didYouMeanOneOf('sever', ['server', 'client']), '; did you mean server?')
  assert.equal(didYouMeanOneOf('neither', ['server', 'client']), '')
})
