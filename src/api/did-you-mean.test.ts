// Suggestions for typing mistakes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { amongSaid, didYouMean } from './did-you-mean.ts'

test('never suggests the word itself', () => {
  assert.equal(didYouMean('server', ['server']), '')
  assert.equal(didYouMean('server', ['server', 'serve']), '; did you mean serve?')
  assert.equal(didYouMean('Server', ['server']), '; did you mean server?')
})

test('after a list of choices, suggests one of several, but not the only one', () => {
  assert.equal(amongSaid('sever', ['server']), '')
  assert.equal(amongSaid('sever', ['server', 'client']), '; did you mean server?')
  assert.equal(amongSaid('neither', ['server', 'client']), '')
})
