// When a request is made again: where the next one may end otherwise.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../api/errors.ts'
import { mayPass } from './session.ts'
import { untrusted } from './trust.ts'

test('what was refused, reset or busy may pass; broken trust does not, nor is a server that let us wait asked five times', () => {
  const away = (message: string) => new ApiError(503, 'ServiceUnavailable', message)
  assert.equal(mayPass(away('cannot reach https://x: nobody listens there')), true)
  assert.equal(mayPass(new Error('anything')), true)
  assert.equal(mayPass(untrusted('cannot trust https://x')), false)
  assert.equal(mayPass(away('cannot reach https://x: no answer within 30 s')), false)
  assert.equal(mayPass(away('cannot reach https://x: it did not answer in time')), false)
})
