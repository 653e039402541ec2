// What is read from a refusal that this server does not write: that of an older one, and nonsense.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, type Cause } from '../api/errors.ts'
import { refusedScope } from './refused.ts'

const message =
  'selfsubjectreviews.authentication.k8s.io is forbidden: User "ada" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope: the scope of access key "ci" does not cover it'
const refusal = (causes?: unknown) =>
  new ApiError(403, 'Forbidden', message, { details: causes === undefined ? {} : { causes: causes as Cause[] } })
const scope = { reason: 'KeyScope', message: '{"projects":[{"project":"shop"}]}' }

test('a server that tells nothing of the key, or nonsense, has told user and key all the same', () => {
  for (const causes of [
    undefined,
    null,
    7,
    [],
    [null],
    [{ reason: 'KeyScope' }],
    [{ ...scope, message: '{' }],
    [{ ...scope, message: '[]' }],
    [{ ...scope, message: 'null' }],
    [scope, { reason: 'KeyEndsIn', message: 'soon' }],
    [scope, { reason: 'KeyEndsIn', message: '1e999' }],
  ])
    assert.deepEqual(refusedScope(refusal(causes)), { user: 'ada', key: 'ci' }, JSON.stringify(causes))
})

test('scope and seconds are read from the causes; no seconds are no end', () => {
  const projects = { projects: [{ project: 'shop' }] }
  assert.deepEqual(refusedScope(refusal([scope]))?.told, { scope: projects, endsIn: undefined })
  const ends = { reason: 'KeyEndsIn', message: '59.5' }
  assert.deepEqual(refusedScope(refusal([ends, scope]))?.told, { scope: projects, endsIn: 59.5 })
})

test('another refusal is none by scope, whatever its causes say', () => {
  const other = new ApiError(403, 'Forbidden', 'teams is forbidden', { details: { causes: [scope] } })
  assert.equal(refusedScope(other), undefined)
  assert.equal(refusedScope(new ApiError(401, 'Unauthorized', message, { details: { causes: [scope] } })), undefined)
})
