// What is remembered of access keys, and of those that are none.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openReviews } from './reviews.ts'

const ada = { caller: { username: 'ada', groups: [] }, keyUid: 'uid' }

test('unknown keys are remembered for a while, only so many, and push out no key that counts', async () => {
  const asked: string[] = []
  let time = 0
  const reviews = openReviews({
    review: async key => {
      asked.push(key)
      return key === 'good' ? ada : undefined
    },
    order: () => 0,
    now: () => time,
  })
  await reviews.of('good', 'good', '')
  for (let count = 0; count < 12_000; count++) await assert.rejects(reviews.of(`k${count}`, `k${count}`, 'a'))
  assert.ok(reviews.known <= 10_001, String(reviews.known))
  await assert.rejects(reviews.of('k11999', 'k11999', 'a'))
  await reviews.of('good', 'good', '')
  assert.equal(asked.length, 12_001)
  time += 2001
  await assert.rejects(reviews.of('k11999', 'k11999', 'a'))
  assert.equal(asked.length, 12_002)
  time += 10_000
  await reviews.of('good', 'good', '')
  assert.equal(asked.length, 12_003)
})

test('a key is asked about anew once something was revoked, and when the service could not say', async () => {
  let asked = 0
  let order = 0
  const reviews = openReviews({
    review: async () => {
      asked++
      if (asked === 2) throw new Error('away')
      return ada
    },
    order: () => order,
    now: () => 0,
  })
  assert.equal((await reviews.of('k', 'd', '')).issued, 0)
  order = 1
  await assert.rejects(reviews.of('k', 'd', ''), /away/)
  assert.equal((await reviews.of('k', 'd', '')).issued, 1)
  assert.equal(asked, 3)
})
