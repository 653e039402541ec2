// Polling of the device flow: intervals, unreachable servers, and the ends of a code.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../api/errors.ts'
import { pollDevice } from './device-login.ts'
import type { OAuthAnswer } from './sign-in-api.ts'

const refused = (error: string): OAuthAnswer => ({ ok: false, error, description: `described ${error}` })
const key: OAuthAnswer = { ok: true, body: { key: 'plat_x' } }
const started = { device_code: 'secret', expires_in: 600, interval: 5 }

/** Polls a server with these answers, one after the other. Returns the seconds between the requests. */
async function poll(answers: readonly (OAuthAnswer | Error)[], over: object = {}) {
  const waited: number[] = []
  const left = [...answers]
  let time = 0
  const result = await pollDevice(
    {
      server: 'https://plane.example',
      post: async (path, body) => {
        assert.deepEqual([path, body], ['/auth/device/token', { device_code: 'secret' }])
        const next = left.shift()
        if (next instanceof Error) throw next
        return next ?? refused('authorization_pending')
      },
    },
    { ...started, ...over },
    {
      now: () => time,
      sleep: async milliseconds => {
        waited.push(milliseconds / 1000)
        time += milliseconds
      },
    },
  ).then(
    value => ({ value, message: '', code: 0 }),
    error => ({ value: undefined, message: (error as Error).message, code: (error as ApiError).code }),
  )
  return { ...result, waited }
}

test('the interval of the server is kept, and five seconds longer after slow_down', async () => {
  const pending = refused('authorization_pending')
  const { value, waited } = await poll([pending, refused('slow_down'), pending, key])
  assert.deepEqual([value, waited], ['plat_x', [5, 5, 10, 10]])
  assert.deepEqual((await poll([key], { interval: undefined })).waited, [5])
  assert.deepEqual((await poll([key], { interval: 0 })).waited, [5])
})

test('an unreachable server is polled less often, and a failed certificate check ends the login', async () => {
  const away = new ApiError(503, 'ServiceUnavailable', 'unreachable')
  assert.deepEqual((await poll([away, away, key])).waited, [5, 10, 20])
  const untrusted = await poll([new ApiError(503, 'Untrusted', 'cannot trust it')])
  assert.deepEqual([untrusted.message, untrusted.waited], ['cannot trust it', [5]])
})

test('a denied or expired code ends the login with exit code 4', async () => {
  const denied = await poll([refused('access_denied')])
  assert.deepEqual([denied.code, denied.message], [401, 'the sign-in was denied in the browser'])
  const advice = 'the code has expired; for a new one: platform login https://plane.example --device'
  assert.equal((await poll([refused('expired_token')])).message, advice)
  assert.match((await poll([refused('invalid_client')])).message, /rejected the sign-in: described invalid_client/)
})

test('without an end from the server, its lifetime ends the login', async () => {
  const { message, waited } = await poll([], { expires_in: 20 })
  assert.match(message, /the code has expired/)
  assert.equal(waited.length, 4)
  assert.match((await poll([], { expires_in: 'soon' })).message, /the code has expired/)
})

test('a response without a usable key is an error', async () => {
  for (const body of [{}, { key: 'a\nb' }, { key: 7 }])
    assert.match((await poll([{ ok: true, body }])).message, /sent an invalid response/)
})
