// Measures what stays in memory.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes of the heap that `make` keeps alive with what it returns. Strings above a megabyte are not in the heap. */
export async function keptBy(make: () => unknown): Promise<number> {
  collect()
  const before = process.memoryUsage().heapUsed
  const kept = await make()
  collect()
  const bytes = process.memoryUsage().heapUsed - before
  // Alive until here.
  if (kept === collect) throw new Error('unreachable')
  return bytes
}
