// Measures what stays in memory.

import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes that `make` keeps alive with what it returns: the heap, buffers, and strings outside the heap. */
export async function keptBy(make: () => unknown): Promise<number> {
  const before = await settledBytes()
  const kept = await make()
  const bytes = (await settledBytes()) - before
  // Alive until here.
  if (kept === collect) throw new Error('unreachable')
  return bytes
}

/** Bytes by which `fill` makes memory grow. Waits at most 20 seconds for a growth below `limit`. */
export async function growthBy(fill: () => Promise<void>, limit: number): Promise<number> {
  const before = await settledBytes()
  await fill()
  const end = performance.now() + 20_000
  let growth = usedBytes() - before
  while (growth >= limit && performance.now() < end) {
    await wait(50)
    growth = usedBytes() - before
  }
  return growth
}

/** V8 frees buffers some time after a garbage collection. */
async function settledBytes(): Promise<number> {
  let last = Number.POSITIVE_INFINITY
  let bytes = usedBytes()
  while (last - bytes > 100_000) {
    await wait(50)
    last = bytes
    bytes = usedBytes()
  }
  return bytes
}

function usedBytes(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
