// Limits per identity: no identity starves another, and idle ones are forgotten.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cpuMilliseconds } from '../../test/support/cpu-time.ts'
import { type InflightLimitsOptions, openInflightLimits } from './inflight-limits.ts'

const max = { read: 10, write: 10, watch: 10 }
const open = (more: Partial<InflightLimitsOptions> = {}) =>
  openInflightLimits({ max, share: 0.8, rate: 0, burst: 0, now: () => 0, ...more })

test('one identity alone gets at most its share, so that others find free slots', () => {
  const limits = open()
  const ways = Array.from({ length: 12 }, () => limits.enter('ada', 'read'))
  assert.equal(ways.filter(Boolean).length, 8)
  assert.ok(limits.enter('bob', 'read'))
  assert.ok(limits.enter('ada', 'write'), 'kinds of traffic are counted apart')
  assert.deepEqual(limits.current, { read: 9, write: 1, watch: 0 })
  ways[0]?.()
  assert.equal(limits.current.read, 8)
  assert.equal(limits.stats.share, 4)
})

test('under load, identities above the fair share are rejected first', () => {
  const limits = open()
  const ada = Array.from({ length: 8 }, () => limits.enter('ada', 'read'))
  assert.ok(limits.enter('bob', 'read'))
  ada.pop()?.()
  assert.equal(limits.enter('ada', 'read'), undefined, 'holds 7, a fair share is 5')
  assert.ok(limits.enter('bob', 'read'))
  assert.ok(limits.enter('eve', 'read'))
  assert.equal(limits.enter('bob', 'read'), undefined, 'full')
  assert.equal(limits.stats.full, 1)
})

test('changed limits count requests in flight, and end none of them', () => {
  const limits = open()
  const ways = Array.from({ length: 6 }, () => limits.enter('ada', 'read'))
  limits.resize({ max: { ...max, read: 4 }, share: 1 })
  assert.equal(limits.enter('bob', 'read'), undefined, 'full')
  assert.equal(limits.current.read, 6)
  for (const leave of ways) leave?.()
  assert.deepEqual(limits.current, { read: 0, write: 0, watch: 0 })
  assert.equal(Array.from({ length: 6 }, () => limits.enter('ada', 'read')).filter(Boolean).length, 4)
  limits.resize({ max: { ...max, read: 20 }, share: 0.5 })
  assert.equal(Array.from({ length: 9 }, () => limits.enter('ada', 'read')).filter(Boolean).length, 6)
})

test('after a burst an identity is limited to its rate', () => {
  let time = 0
  const limits = open({ rate: 10, burst: 5, now: () => time })
  const tries = (count: number) => {
    let through = 0
    for (let n = 0; n < count; n++) {
      const leave = limits.enter('ada', 'read')
      if (leave) through++
      leave?.()
    }
    return through
  }
  assert.equal(tries(20), 5)
  time += 200
  assert.equal(tries(20), 2)
  time += 60_000
  assert.equal(tries(20), 5)
  assert.ok(limits.enter('bob', 'read'))
  assert.equal(limits.stats.rate, 48)
})

test('idle identities are forgotten, busy ones and those with an empty bucket are not', () => {
  let time = 0
  const limits = open({ max: { read: 1000, write: 1000, watch: 1000 }, now: () => time })
  limits.enter('busy', 'watch')
  for (let n = 0; n < 10_000; n++) {
    time += 1000
    limits.enter(`user${n}`, 'read')?.()
  }
  assert.ok(limits.stats.identities < 200, String(limits.stats.identities))
  assert.equal(limits.current.watch, 1)
  const slow = open({ rate: 1, burst: 1000, now: () => time })
  for (let n = 0; n < 1000; n++) slow.enter('ada', 'read')?.()
  time += 120_000
  for (let n = 0; n < 10; n++) slow.enter(`other${n}`, 'read')?.()
  let through = 0
  for (let n = 0; n < 1000; n++) if (slow.enter('ada', 'read')) through++
  assert.ok(through <= 120, `${through} after two minutes at one a second`)
})

test('neither the total nor the share is exceeded, and a newcomer is rejected only at the total (2,000 histories)', () => {
  const step = fc.record({ who: fc.constantFrom('a', 'b', 'c', 'd', 'e'), leaves: fc.boolean() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 80 }), (total, steps) => {
      const limits = open({ max: { read: total, write: total, watch: total } })
      const held = new Map<string, (() => void)[]>()
      const sum = () => [...held.values()].reduce((all, ways) => all + ways.length, 0)
      for (const { who, leaves } of steps) {
        const ways = held.get(who) ?? []
        held.set(who, ways)
        if (leaves) ways.pop()?.()
        else {
          const before = sum()
          const leave = limits.enter(who, 'read')
          if (leave) ways.push(leave)
          else if (ways.length === 0) assert.equal(before, total)
        }
        assert.equal(limits.current.read, sum())
        assert.ok(sum() <= total)
        assert.ok(ways.length <= Math.max(1, Math.floor(total * 0.8)))
      }
    }),
    { numRuns: 2000 },
  )
})

test('a million entries stay cheap', () => {
  const limits = open({ rate: 1e9, burst: 1e9, now: Date.now })
  const names = Array.from({ length: 1000 }, (_, index) => `user${index}`)
  const used = cpuMilliseconds(() => {
    for (let n = 0; n < 1_000_000; n++) limits.enter(names[n % 1000] as string, 'read')?.()
  })
  assert.ok(used < 3000, `${used} ms`)
  assert.equal(limits.current.read, 0)
})
