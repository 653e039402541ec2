// When a request is made again: where the next one may end otherwise.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../api/errors.ts'
import { untrusted } from './login/trust.ts'
import { mayPass } from './session.ts'

test('what was refused, reset or busy may pass; broken trust does not, nor is a server that let us wait asked five times', () => {
  const away = (code: string) =>
    Object.assign(new ApiError(503, 'ServiceUnavailable', 'cannot reach https://x'), {
      cause: Object.assign(new Error('failed'), { code }),
    })
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', '']) assert.equal(mayPass(away(code)), true, code)
  assert.equal(mayPass(new Error('anything')), true)
  assert.equal(mayPass(untrusted('cannot trust https://x')), false)
  for (const code of ['ETIMEDOUT', 'ERR_NO_ANSWER']) assert.equal(mayPass(away(code)), false, code)
})
