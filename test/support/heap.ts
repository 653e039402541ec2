// Measures what stays in memory.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes that `make` keeps alive with what it returns: the heap, buffers, and strings outside the heap. */
export async function keptBy(make: () => unknown): Promise<number> {
  const before = await used()
  const kept = await make()
  const bytes = (await used()) - before
  // Alive until here.
  if (kept === collect) throw new Error('unreachable')
  return bytes
}

/** V8 frees the memory of buffers some time after it collects them. */
async function used(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    collect()
    await nextTurn()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
