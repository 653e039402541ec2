// The rate of writes: even intervals, and never more than the limit within any second.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPace } from './pace.ts'

const signal = new AbortController().signal

test('writes start at even intervals, also after a pause', async () => {
  let time = 1000
  const waits: number[] = []
  const wait = async (milliseconds: number) => {
    waits.push(milliseconds)
  }
  const pace = openPace({ perSecond: 200, ticks: () => time, wait, signal })
  await Promise.all(Array.from({ length: 5 }, pace))
  assert.deepEqual(waits.splice(0), [5, 10, 15, 20])
  time += 86_400_000
  await Promise.all(Array.from({ length: 3 }, pace))
  assert.deepEqual(waits, [5, 10])
})

/** Punctual timers, but every three seconds the process stalls for 100 ms. Timers of that time then fire together. */
function stallingTimers() {
  let time = 0
  let timers: { readonly at: number; readonly fire: () => void }[] = []
  return {
    ticks: () => time,
    wait: (milliseconds: number) =>
      new Promise<void>(fire => {
        timers.push({ at: time + milliseconds, fire })
      }),
    async run(until: () => boolean) {
      while (!until()) {
        for (let turn = 0; turn < 20; turn++) await Promise.resolve()
        time += time % 3000 === 500 ? 100 : 1
        const due = timers.filter(({ at }) => at <= time)
        timers = timers.filter(({ at }) => at > time)
        for (const { fire } of due) fire()
      }
    },
  }
}

test('a stall causes no burst: never more than 200 writes start within a second', async () => {
  const { ticks, wait, run } = stallingTimers()
  const started: number[] = []
  const pace = openPace({ perSecond: 200, ticks, wait, signal })
  const write = async () => {
    while (started.length < 2000) {
      await pace()
      started.push(ticks())
    }
  }
  void Promise.all(Array.from({ length: 16 }, write))
  await run(() => started.length >= 2000)
  for (const [index, end] of started.entries()) {
    const within = started.slice(0, index + 1).filter(start => start > end - 1000).length
    assert.ok(within <= 200, `${within} writes in the second before ${end}`)
  }
})

test('an aborted signal ends the wait', async () => {
  const ending = new AbortController()
  const pace = openPace({ perSecond: 1, ticks: () => 0, wait: async () => {}, signal: ending.signal })
  await pace()
  ending.abort()
  await pace()
})
