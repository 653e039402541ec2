// Leader election: one leader at a time, replaced when it stops renewing, with clocks that are hours apart.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ApiError } from '../../src/api/errors.ts'
import type { Resources } from '../../src/api/resources.ts'
import { holdLease } from '../../src/reconcile/leader-election.ts'
import { Lease } from '../../src/vcluster/sync/kinds.ts'
import { buildApiServer } from '../support/in-process.ts'

const at = { namespace: 'team', name: 'vcluster-sync-vc' }

type Clock = ReturnType<typeof clockwork>

/** A clock that tests control; waiting code wakes up when its time has come. */
function clockwork() {
  let time = 0
  const waiting = new Set<{ readonly until: number; readonly wake: () => void }>()
  const settle = async () => {
    for (let n = 0; n < 30; n++) await turn()
  }
  return {
    ticks: () => time,
    wait: (milliseconds: number, signal: AbortSignal) =>
      new Promise<void>(resolve => {
        const one = {
          until: time + milliseconds,
          wake: () => {
            waiting.delete(one)
            resolve()
          },
        }
        signal.addEventListener('abort', one.wake)
        if (signal.aborted) resolve()
        else waiting.add(one)
      }),
    async forward(milliseconds: number) {
      for (const end = time + milliseconds; time < end; ) {
        await settle()
        time += 500
        for (const one of [...waiting]) if (one.until <= time) one.wake()
      }
      await settle()
    },
  }
}

async function open() {
  const apiServer = await buildApiServer({ kinds: [Lease] })
  const clock = clockwork()
  const leading = new Set<string>()
  const start = (identity: string, skew = 0, resources: Resources = apiServer.resources) => {
    const ending = new AbortController()
    const ended = holdLease(
      {
        resources,
        at,
        identity,
        now: () => Date.UTC(2026, 0, 1) + clock.ticks() + skew,
        ticks: clock.ticks,
        wait: clock.wait,
        failed: () => {},
        lead: async signal => {
          leading.add(identity)
          await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
          leading.delete(identity)
        },
      },
      ending.signal,
    )
    return async () => {
      ending.abort()
      await ended
    }
  }
  const holder = async () => (await apiServer.resources.get(Lease, at)).object.spec?.['holderIdentity']
  return { apiServer, clock, leading, start, holder }
}

test('one leads; on shutdown it releases the lease, and another one acquires it immediately', async () => {
  const { apiServer, clock, leading, start, holder } = await open()
  const stops = [start('a'), start('b', 5 * 3600_000), start('c', -5 * 3600_000)]
  await clock.forward(60_000)
  assert.equal(leading.size, 1)
  const [first] = leading
  await stops['abc'.indexOf(first as string)]?.()
  assert.equal(await holder(), '')
  await clock.forward(4000)
  assert.equal(leading.size, 1)
  assert.notEqual([...leading][0], first)
  for (const stop of stops) await stop()
  await apiServer.close()
})

for (const [how, fail] of [
  ['because it is refused', async () => {}],
  // As one that is cut off: an answer comes only when somebody loses patience.
  ['because nobody answers', (clock: Clock) => clock.wait(30_000, new AbortController().signal)],
] as const)
  test(`a leader that cannot renew ${how} stops before another may take over: never do two lead`, async () => {
    const { apiServer, clock, leading, start } = await open()
    let isAway = false
    const flaky: Resources = {
      ...apiServer.resources,
      get: async (...args) => {
        if (!isAway) return apiServer.resources.get(...args)
        await fail(clock)
        throw new ApiError(503, '', 'away')
      },
    }
    const stop = start('a', 0, flaky)
    await clock.forward(1000)
    const other = start('b', -7 * 3600_000)
    await clock.forward(10_000)
    assert.deepEqual([...leading], ['a'])
    isAway = true
    let most = 0
    for (let n = 0; n < 80; n++) {
      await clock.forward(500)
      most = Math.max(most, leading.size)
    }
    assert.equal(most, 1)
    assert.deepEqual([...leading], ['b'])
    isAway = false
    await clock.forward(60_000)
    assert.deepEqual([...leading], ['b'])
    await stop()
    await other()
    await apiServer.close()
  })
