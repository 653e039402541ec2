// Scope denials are recognised by the causes of the Status, never by its message.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, type Cause } from '../api/errors.ts'
import { scopeDenialOf } from './scope-denied.ts'

const refusal = (causes?: unknown, code = 403) =>
  new ApiError(code, 'Forbidden', 'forbidden', { details: causes === undefined ? {} : { causes: causes as Cause[] } })
const denied = [
  { reason: 'KeyScopeDenied', message: 'the scope of the key does not cover it' },
  { reason: 'KeyName', message: 'ci' },
  { reason: 'KeyOwner', message: 'ada' },
]
const scope = { reason: 'KeyScope', message: '{"projects":[{"project":"shop"}]}' }

test('user and key come from the causes, even if the scope is missing or malformed', () => {
  for (const more of [
    [],
    [null],
    [{ reason: 'KeyScope' }],
    [{ ...scope, message: '{' }],
    [{ ...scope, message: '[]' }],
    [{ ...scope, message: 'null' }],
    [scope, { reason: 'KeyEndsIn', message: 'soon' }],
    [scope, { reason: 'KeyEndsIn', message: '1e999' }],
  ])
    assert.deepEqual(scopeDenialOf(refusal([...denied, ...more])), { user: 'ada', key: 'ci' }, JSON.stringify(more))
})

test('scope and remaining seconds come from the causes; without seconds the key does not expire', () => {
  const projects = { projects: [{ project: 'shop' }] }
  assert.deepEqual(scopeDenialOf(refusal([...denied, scope]))?.keyDetails, { scope: projects, endsIn: undefined })
  const ends = { reason: 'KeyEndsIn', message: '59.5' }
  assert.deepEqual(scopeDenialOf(refusal([...denied, ends, scope]))?.keyDetails, { scope: projects, endsIn: 59.5 })
})

test('an error without the cause KeyScopeDenied is not a scope denial', () => {
  for (const causes of [undefined, null, 7, [], [null], [scope], denied.slice(1)])
    assert.equal(scopeDenialOf(refusal(causes)), undefined, JSON.stringify(causes))
  assert.equal(scopeDenialOf(refusal(denied, 401)), undefined)
})
