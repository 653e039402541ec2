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

/** Milliseconds between two looks at the clock, for a piece of work that gives way to others. */
const long = 2
let lastLook = 0

/**
 * As `pause`, for the steps of every write. Many small writes in one turn do not give way to each other: turns of their own
 * would cost more than the writes, and each would be committed alone.
 */
export function pauseIfLong(): Promise<void> | undefined {
  const now = performance.now()
  const isLong = now - lastLook >= long
  lastLook = now
  return isLong ? pause() : undefined
}

/** Until the next turn. */
function startSlice(): void {
  sliceStart = performance.now()
  lastLook = sliceStart
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
