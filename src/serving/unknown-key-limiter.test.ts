// The limit on guessing keys: an exact window of failures per address, with bounded memory.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openUnknownKeyLimiter } from './unknown-key-limiter.ts'

test('after 20 unknown keys in 5 minutes an address waits, until the first of them is 5 minutes old', () => {
  let time = 0
  const guard = openUnknownKeyLimiter({ now: () => time })
  for (let n = 0; n < 20; n++) {
    assert.equal(guard.mayTry('a'), true)
    guard.failed('a')
    time += 1000
  }
  assert.equal(guard.mayTry('a'), false)
  assert.equal(guard.mayTry('b'), true, 'others are not concerned')
  assert.deepEqual([guard.secondsLeft('a'), guard.secondsLeft('b')], [280, 0])
  time = 200_001
  assert.equal(guard.secondsLeft('a'), 100)
  time = 299_999
  assert.equal(guard.mayTry('a'), false)
  assert.equal(guard.secondsLeft('a'), 1)
  time = 300_000
  assert.equal(guard.mayTry('a'), true)
  assert.equal(guard.secondsLeft('a'), 0)
  assert.deepEqual({ ...guard.stats }, { failed: 20, refused: 2, addresses: 1 })
})

test('a client that represents many others gets a higher limit', () => {
  const guard = openUnknownKeyLimiter({ now: () => 0, limit: 2 })
  for (let n = 0; n < 6; n++) {
    assert.equal(guard.mayTry('many'), true)
    guard.failed('many', 3)
  }
  assert.equal(guard.mayTry('many'), false)
})

test('exempt addresses are counted and never rejected', () => {
  const guard = openUnknownKeyLimiter({ now: () => 0 })
  const loopback = guard.addressOf({ headers: {}, socket: { remoteAddress: '127.0.0.1' } } as never)
  for (let n = 0; n < 100; n++) guard.failed(loopback)
  assert.equal(guard.mayTry(loopback), true)
  assert.deepEqual({ ...guard.stats }, { failed: 100, refused: 0, addresses: 0 })
})

test('a limit of 0 switches it off', () => {
  const guard = openUnknownKeyLimiter({ now: () => 0, limit: 0 })
  for (let n = 0; n < 100; n++) guard.failed('a')
  assert.equal(guard.mayTry('a'), true)
})

test('the number of addresses is limited, and expired ones are dropped', () => {
  let time = 0
  const guard = openUnknownKeyLimiter({ now: () => time, limit: 2, maxAddresses: 100 })
  for (let n = 0; n < 1000; n++) {
    guard.failed(`a${n}`)
    guard.failed('busy')
  }
  assert.equal(guard.stats.addresses, 100)
  assert.equal(guard.mayTry('busy'), false, 'who fails again and again is not the oldest')
  time = 300_001
  guard.failed('later')
  assert.equal(guard.stats.addresses, 1)
})

test('it agrees with a naive count of the window (2,000 histories)', () => {
  const step = fc.record({
    wait: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 400 }), fc.integer({ min: 900, max: 1100 })),
    address: fc.constantFrom('a', 'b', 'c'),
  })
  let refused = 0
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 60 }), (limit, steps) => {
      let time = 0
      const guard = openUnknownKeyLimiter({ now: () => time, limit, window: 1000 })
      const history: { address: string; at: number }[] = []
      for (const { wait, address } of steps) {
        time += wait
        const recent = history.filter(one => one.address === address && one.at > time - 1000).length
        assert.equal(guard.mayTry(address), recent < limit)
        if (recent >= limit) refused++
        else {
          guard.failed(address)
          history.push({ address, at: time })
        }
      }
    }),
    { numRuns: 2000 },
  )
  assert.ok(refused > 500, String(refused))
})
