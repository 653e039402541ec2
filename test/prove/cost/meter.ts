// Measures the cost of work on the main thread: total CPU time, and the longest uninterrupted stretch.

/** Milliseconds of CPU time of this thread. */
export type Cost = { readonly total: number; readonly longest: number }

const idle = 0.1
const cpu = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The event loop takes a turn between two stretches. Work in other threads is not counted. */
export async function measure(work: () => Promise<unknown>): Promise<Cost> {
  let isOver = false
  let longest = 0
  let total = 0
  let last = cpu()
  const look = () => {
    const now = cpu()
    const stretch = now - last
    longest = Math.max(longest, stretch)
    // A turn without work also takes a little time.
    if (stretch > idle) total += stretch
    last = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  await work()
  isOver = true
  look()
  return { total, longest }
}
