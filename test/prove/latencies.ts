// Request latencies as percentiles, and waiting for a time.

import { setTimeout as pause } from 'node:timers/promises'

export type Latencies = {
  add(milliseconds: number): void
  readonly count: number
  /** 0.99: the 99th percentile. */
  at(share: number): number
}

export function openLatencies(): Latencies {
  const all: number[] = []
  return {
    add: milliseconds => void all.push(milliseconds),
    get count() {
      return all.length
    },
    at: share => all.toSorted((one, other) => one - other)[Math.floor(all.length * share)] ?? 0,
  }
}

/** Runs `count` tasks in this many parallel lanes. */
export async function inLanes(lanes: number, count: number, make: (index: number, lane: number) => Promise<unknown>) {
  let next = 0
  const lane = async (_: unknown, number: number) => {
    while (next < count) await make(next++, number)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

export async function waitFor(isSo: () => boolean, milliseconds: number): Promise<boolean> {
  for (const end = Date.now() + milliseconds; !isSo(); await pause(5)) if (Date.now() > end) return false
  return true
}
