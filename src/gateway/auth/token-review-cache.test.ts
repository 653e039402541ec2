// The cache of access key reviews, for valid and for unknown keys.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tooManyRequests } from '../../api/errors.ts'
import { openReviewCache } from './token-review-cache.ts'

const refuse = (is: boolean) => {
  if (is) throw tooManyRequests()
}
const ada = { caller: { username: 'ada', groups: [] }, keyUid: 'uid' }

test('unknown keys are cached for a while, up to a limit, and evict no valid key', async () => {
  const asked: string[] = []
  let time = 0
  const reviews = openReviewCache({
    review: async key => {
      asked.push(key)
      return key === 'good' ? ada : undefined
    },
    order: () => 0,
    now: () => time,
  })
  await reviews.of('good', 'good', { address: '' })
  for (let count = 0; count < 12_000; count++)
    await assert.rejects(reviews.of(`k${count}`, `k${count}`, { address: 'a' }))
  assert.ok(reviews.known <= 10_001, String(reviews.known))
  await assert.rejects(reviews.of('k11999', 'k11999', { address: 'a' }))
  await reviews.of('good', 'good', { address: '' })
  assert.equal(asked.length, 12_001)
  time += 2001
  await assert.rejects(reviews.of('k11999', 'k11999', { address: 'a' }))
  assert.equal(asked.length, 12_002)
  time += 10_000
  await reviews.of('good', 'good', { address: '' })
  assert.equal(asked.length, 12_003)
})

test('a key is reviewed again after a revocation, and after a failed review', async () => {
  let asked = 0
  let order = 0
  const reviews = openReviewCache({
    review: async () => {
      asked++
      if (asked === 2) throw new Error('away')
      return ada
    },
    order: () => order,
    now: () => 0,
  })
  assert.equal((await reviews.of('k', 'd', { address: '' })).issued, 0)
  order = 1
  await assert.rejects(reviews.of('k', 'd', { address: '' }), /away/)
  assert.equal((await reviews.of('k', 'd', { address: '' })).issued, 1)
  assert.equal(asked, 3)
})

test('reviews of an earlier generation are not used after the trust has changed', async () => {
  const answers: ((found: typeof ada | undefined) => void)[] = []
  let generation = 0
  const reviews = openReviewCache({
    review: () => new Promise(resolve => void answers.push(resolve)),
    generation: () => generation,
    order: () => 0,
    now: () => 0,
  })
  const first = reviews.of('k', 'd', { address: '' })
  await turn()
  generation++
  answers[0]?.(ada)
  await turn()
  assert.equal(answers.length, 2, 'it is reviewed again')
  answers[1]?.(ada)
  assert.equal((await first).generation, 1)
  generation++
  const second = reviews.of('k', 'd', { address: '' })
  await turn()
  answers[2]?.(undefined)
  await assert.rejects(second, /invalid access key/)
})

const turn = () => new Promise(resolve => setImmediate(resolve))

test('a previously valid key is reviewed while invented ones occupy every slot, and after the management API was unreachable', async () => {
  let time = 0
  let isAway = false
  const reviews = openReviewCache({
    review: async key => {
      if (key !== 'good') return new Promise(() => {})
      if (isAway) throw new Error('away')
      return ada
    },
    order: () => 0,
    now: () => time,
  })
  const good = () => reviews.of('good', 'good', { address: '10.0.0.1', checkGuess: () => refuse(true) })
  await assert.rejects(good(), /Too many requests/, 'it is not known yet')
  await reviews.of('good', 'good', { address: '10.0.0.1' })
  for (let index = 0; index < 64; index++)
    void reviews.of(`k${index}`, `k${index}`, { address: `10.0.0.${index % 4}` }).catch(() => {})
  await assert.rejects(reviews.of('more', 'more', { address: '10.0.1.1' }), /Too many requests/)
  time += 60_000
  isAway = true
  await assert.rejects(good(), /away/)
  isAway = false
  assert.equal((await good()).keyUid, 'uid')
})

test('previously valid keys wait for a slot, and a key that becomes invalid is treated as unknown again', async () => {
  let time = 0
  let isSlow = false
  const answers: ((found: typeof ada | undefined) => void)[] = []
  const reviews = openReviewCache({
    review: () => (isSlow ? new Promise(resolve => answers.push(resolve)) : Promise.resolve(ada)),
    order: () => 0,
    now: () => time,
  })
  const of = (index: number) =>
    reviews.of(`k${index}`, `k${index}`, { address: '', checkGuess: () => refuse(time > 0) })
  for (let index = 0; index < 100; index++) await of(index)
  time += 60_000
  isSlow = true
  const all = Promise.allSettled(Array.from({ length: 100 }, (_, index) => of(index)))
  await turn()
  assert.equal(answers.length, 64)
  for (let index = 0; index < 100; index++) {
    answers[index]?.(index === 99 ? undefined : ada)
    await turn()
  }
  assert.deepEqual(
    (await all).map(({ status }) => status),
    Array.from({ length: 100 }, (_, index) => (index === 99 ? 'rejected' : 'fulfilled')),
  )
  time += 60_000
  await assert.rejects(of(99), /Too many requests/)
})
