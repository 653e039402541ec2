// Requests in flight when their key expires while the management API is busy or unreachable.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/wire.ts'
import { type ApiError, tooManyRequests, unavailable } from '../../api/errors.ts'
import type { Principal } from '../auth/principal.ts'
import { UnknownAccessKey } from '../auth/token-review-cache.ts'
import { openActiveRequests } from './active-requests.ts'

const until = (expires: number): Principal => ({
  caller: { username: 'ada', groups: [] },
  keyUid: 'uid',
  from: '',
  generation: 0,
  jti: undefined,
  issued: 0,
  expires,
})

async function ended(renew: () => Promise<Principal>, principal = until(500)) {
  const cut: ApiError[] = []
  let asked = 0
  const streams = openActiveRequests({
    revocations: () => undefined,
    isFeedStale: () => false,
    isCurrent: () => true,
    now: () => 1000,
  })
  streams.enter({
    principal,
    isLong: true,
    renew: () => {
      asked++
      return renew()
    },
    cut: why => cut.push(why),
  })
  streams.recheck()
  return { streams, codes: () => cut.map(({ code }) => code), asked: () => asked }
}

test('the gateway repeats a review that failed when a key expired, and the streams stay', async () => {
  const answers = [() => Promise.reject(tooManyRequests()), () => Promise.reject(unavailable('away'))]
  const { streams, codes, asked } = await ended(() => answers.shift()?.() ?? Promise.resolve(until(5000)))
  await eventually('the gateway repeats the review until it gets an answer', async () => asked() === 3)
  streams.recheck()
  assert.deepEqual([codes(), streams.open, asked()], [[], 1, 3])
  streams.close()
})

test('a stream whose key is no longer valid ends with 401; without a response of the management API with 503', async () => {
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

test('a stream whose key is due for a review ends if the key is no longer valid, and stays while the management API is unreachable', async () => {
  const due = { ...until(9000), reviewAt: 900 }
  const over = await ended(() => Promise.reject(new UnknownAccessKey()), due)
  const away = await ended(() => Promise.reject(unavailable('away')), due)
  const fine = await ended(() => Promise.resolve({ ...until(9000), reviewAt: 2000 }), due)
  await eventually('it is over', async () => over.codes().length === 1)
  assert.deepEqual(over.codes(), [401])
  await eventually('the gateway gives up', async () => away.asked() > 3)
  fine.streams.recheck()
  assert.deepEqual([away.codes(), away.streams.open], [[], 1])
  assert.deepEqual([fine.codes(), fine.asked()], [[], 1])
  for (const { streams } of [over, away, fine]) streams.close()
})
