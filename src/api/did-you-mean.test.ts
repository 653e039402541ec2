// "Did you mean": what is proposed, and that nothing is proposed that was just said.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { amongSaid, didYouMean } from './did-you-mean.ts'

test('a word is never proposed in its own stead', () => {
  assert.equal(didYouMean('server', ['server']), '')
  assert.equal(didYouMean('server', ['server', 'serve']), '; did you mean serve?')
  assert.equal(didYouMean('Server', ['server']), '; did you mean server?')
})

test('behind choices that were said, one of several is proposed, and not the only one', () => {
  assert.equal(amongSaid('sever', ['server']), '')
  assert.equal(amongSaid('sever', ['server', 'client']), '; did you mean server?')
  assert.equal(amongSaid('neither', ['server', 'client']), '')
})
