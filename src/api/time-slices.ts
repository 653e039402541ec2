// Splits long work on the main thread into slices, so that other requests run in between.

const waiting: (() => void)[] = []

/** Resolves in a turn of the event loop that no other long piece of work gets. */
export function ownTurn(): Promise<void> {
  return new Promise(resolve => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(next)
  })
}

/** An immediate that is scheduled during a turn runs in the next one, after new input was read. */
function next(): void {
  startSlice()
  waiting[0]?.()
  waiting.shift()
  if (waiting.length > 0) setImmediate(next)
}

/** Milliseconds of work in one turn of the event loop. */
const slice = 10
let sliceStart: number | undefined

/** Called between two pieces of work. undefined: continue. Otherwise the slice is used up, and the promise is the next turn. */
export function pause(): Promise<void> | undefined {
  if (sliceStart !== undefined) return performance.now() - sliceStart < slice ? undefined : ownTurn()
  startSlice()
  return undefined
}

/** Until the next turn. */
function startSlice(): void {
  sliceStart = performance.now()
  setImmediate(() => {
    sliceStart = undefined
  })
}

/** Calls `work` for every item. */
export async function forEachInSlices<T>(items: Iterable<T>, work: (item: T) => void | Promise<void>): Promise<void> {
  for (const item of items) {
    await pause()
    await work(item)
  }
}
