// Reconciles by name: a name is worked on once at a time, an error means again later, ever more slowly.

import { pause } from '../api/time-slices.ts'

export type LoopOptions = {
  /** Brings one thing in order. Rejects: try again later. A number: look again after so many milliseconds. */
  readonly reconcile: (name: string) => Promise<number | undefined>
  readonly failed: (name: string, error: unknown) => void
}

export interface Loop {
  add(name: string): void
  /** Resolves when nothing is queued or under way (what waits for its time does not count). */
  idle(): Promise<void>
  stop(): Promise<void>
}

const slowest = 60_000
/** The longest delay of a timer, 24 days; a longer one would fire at once. Longer waits are checked again after it. */
const longestTimer = 2 ** 31 - 1

export function startLoop({ reconcile, failed }: LoopOptions): Loop {
  const queue = new Set<string>()
  const failures = new Map<string, number>()
  const timers = new Map<string, NodeJS.Timeout>()
  const resting: (() => void)[] = []
  let running = false
  let stopped = false

  const later = (name: string, milliseconds: number) => {
    clearTimeout(timers.get(name))
    timers.set(name, setTimeout(() => add(name), Math.min(milliseconds, longestTimer)).unref())
  }

  const work = async (name: string) => {
    try {
      const again = await reconcile(name)
      failures.delete(name)
      if (again !== undefined) later(name, again)
    } catch (error) {
      const count = (failures.get(name) ?? 0) + 1
      failures.set(name, count)
      failed(name, error)
      later(name, Math.min(slowest, 50 * 2 ** count))
    }
  }

  const run = async () => {
    running = true
    // One walk for all of them, what is added meanwhile included: a new walk for each would pass all that were removed.
    for (const name of queue) {
      if (stopped) break
      queue.delete(name)
      await work(name)
      await pause()
    }
    running = false
    for (const rest of resting.splice(0)) rest()
  }

  const add = (name: string) => {
    if (stopped) return
    clearTimeout(timers.get(name))
    timers.delete(name)
    queue.add(name)
    if (!running) void run()
  }

  const idle = () => (running ? new Promise<void>(resolve => resting.push(resolve)) : Promise.resolve())

  return {
    add,
    idle,
    async stop() {
      stopped = true
      for (const timer of timers.values()) clearTimeout(timer)
      await idle()
    },
  }
}
