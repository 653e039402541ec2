// Measures how long changes at one place take to arrive at another.

import { setTimeout as pause } from 'node:timers/promises'
import type { Resource } from '../src/api/object.ts'
import type { Watch } from '../src/api/resources.ts'

const [changes, every] = [1000, 20]
export const changesPerSecond = 1000 / every

type LagOptions = {
  /** Of the place where the changes arrive. */
  readonly watch: Watch
  /** The number that a change left in an object. */
  readonly stampOf: (object: Resource) => number
  /** Makes a change that leaves this number. */
  readonly change: (stamp: number) => unknown
}

/** Milliseconds from before a change until the watch delivers it, sorted. */
export async function measureLag({ watch, stampOf, change }: LagOptions): Promise<number[]> {
  const sent = new Map<number, number>()
  const lags: number[] = []
  const listening = (async () => {
    for (let events = await watch.next(); events && lags.length < changes; events = await watch.next())
      for (const { document } of events) {
        const stamp = stampOf(document.object)
        const since = sent.get(stamp)
        if (since === undefined) continue
        sent.delete(stamp)
        lags.push(performance.now() - since)
      }
  })()
  const start = performance.now()
  for (let stamp = 1; stamp <= changes; stamp++) {
    await pause(Math.max(0, start + stamp * every - performance.now()))
    sent.set(stamp, performance.now())
    void change(stamp)
  }
  await Promise.race([listening, pause(30_000)])
  watch.stop()
  if (lags.length < changes) throw new Error(`${changes - lags.length} of ${changes} changes did not arrive`)
  return lags.sort((a, b) => a - b)
}
