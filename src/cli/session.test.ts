// Which connection errors are retried.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../api/errors.ts'
import { untrusted } from './login/trust.ts'
import { isRetryable } from './session.ts'

test('refused and reset connections are retried; untrusted servers and timeouts are not', () => {
  const unreachable = (code: string) =>
    Object.assign(new ApiError(503, 'ServiceUnavailable', 'cannot reach https://x'), {
      cause: Object.assign(new Error('failed'), { code }),
    })
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', ''])
    assert.equal(isRetryable(unreachable(code)), true, code)
  assert.equal(isRetryable(new Error('anything')), true)
  assert.equal(isRetryable(untrusted('cannot trust https://x')), false)
  for (const code of ['ETIMEDOUT', 'ERR_NO_ANSWER']) assert.equal(isRetryable(unreachable(code)), false, code)
})
