// Scope denials are recognised by the causes of the Status, never by its message.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, type Cause } from '../api/errors.ts'
import { isScopeDenial } from './scope-denied.ts'

const refusal = (causes?: unknown, code = 403) =>
  new ApiError(code, 'Forbidden', 'forbidden', { details: causes === undefined ? {} : { causes: causes as Cause[] } })
const denied = [{ reason: 'KeyScopeDenied', message: 'the scope of the key does not cover it' }]

test('a 403 with the cause KeyScopeDenied is a scope denial', () => {
  assert.equal(isScopeDenial(refusal(denied)), true)
  assert.equal(isScopeDenial(refusal([null, { reason: 'Other' }, ...denied])), true)
})

test('an error without the cause KeyScopeDenied is not a scope denial', () => {
  for (const causes of [undefined, null, 7, [], [null], [{ reason: 'Other' }]])
    assert.equal(isScopeDenial(refusal(causes)), false, JSON.stringify(causes))
  assert.equal(isScopeDenial(refusal(denied, 401)), false)
  assert.equal(isScopeDenial(new Error('KeyScopeDenied')), false)
})
