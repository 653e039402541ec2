// What is under way when its key ends, and the service has no time to say whether it goes on.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/wire.ts'
import { type ApiError, tooManyRequests, unavailable } from '../../api/errors.ts'
import type { Principal } from '../auth/principal.ts'
import { UnknownAccessKey } from '../auth/token-review-cache.ts'
import { openStreams } from './active-requests.ts'

const until = (expires: number): Principal => ({
  caller: { username: 'ada', groups: [] },
  keyUid: 'uid',
  from: '',
  generation: 0,
  jti: undefined,
  issued: 0,
  expires,
})

async function ended(renew: () => Promise<Principal>) {
  const cut: ApiError[] = []
  let asked = 0
  const streams = openStreams({
    revocations: () => undefined,
    isFeedStale: () => false,
    isCurrent: () => true,
    now: () => 1000,
  })
  streams.enter({
    principal: until(500),
    isLong: true,
    renew: () => {
      asked++
      return renew()
    },
    cut: why => cut.push(why),
  })
  streams.look()
  return { streams, codes: () => cut.map(({ code }) => code), asked: () => asked }
}

test('what is busy or away for a moment when a key ends is asked again, and its streams stay', async () => {
  const answers = [() => Promise.reject(tooManyRequests()), () => Promise.reject(unavailable('away'))]
  const { streams, codes, asked } = await ended(() => answers.shift()?.() ?? Promise.resolve(until(5000)))
  await eventually('it was asked until it said', async () => asked() === 3)
  streams.look()
  assert.deepEqual([codes(), streams.open, asked()], [[], 1, 3])
  streams.close()
})

test('a stream whose key counts no more is told 401; where nobody could say, 503', async () => {
  const over = await ended(() => Promise.reject(new UnknownAccessKey()))
  const [away, silent] = [
    await ended(() => Promise.reject(unavailable('away'))),
    await ended(() => new Promise(() => {})),
  ]
  await eventually('it is over', async () => over.codes().length === 1)
  assert.deepEqual([over.codes(), over.asked()], [[401], 1])
  await eventually('they are cut', async () => away.codes().length === 1 && silent.codes().length === 1)
  assert.deepEqual([away.codes(), silent.codes()], [[503], [503]])
  for (const { streams } of [over, away, silent]) streams.close()
})
