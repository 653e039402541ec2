// Splits long work on the main thread into slices, so that requests run in between.

/** Milliseconds without a break. */
const slice = 10

/** Called between two pieces of work. Resolves in a later turn of the event loop if the slice is used up. */
export function openTimeSlices(): () => Promise<void> {
  let start = performance.now()
  return async () => {
    if (performance.now() - start < slice) return
    await new Promise(setImmediate)
    start = performance.now()
  }
}

/** Calls `work` for every item. */
export async function forEachInSlices<T>(items: Iterable<T>, work: (item: T) => void | Promise<void>): Promise<void> {
  const pause = openTimeSlices()
  for (const item of items) {
    await pause()
    await work(item)
  }
}
