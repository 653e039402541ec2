// Queues requests when more arrive than fit into a time slice of the event loop, so that probes and other short requests can run.

/** undefined: continue at once. Otherwise resolves when it is the request's turn. */
export type Fairness = () => Promise<void> | undefined

/** Milliseconds per turn of the event loop. Further requests wait for the next turn. */
const longest = 10

export function openFairness(now: () => number): Fairness {
  let waiting: (() => void)[] = []
  let next = 0
  let begun = 0
  let isUnderWay = false

  function begin(): void {
    begun = now()
    if (next > 0) {
      waiting = waiting.slice(next)
      next = 0
    }
    isUnderWay = waiting.length > 0
    if (isUnderWay) step()
  }

  /** A released request finishes soon after, so later steps can measure it. A few more may start before that. */
  function step(): void {
    if (next === waiting.length || now() - begun >= longest) return void setImmediate(begin)
    waiting[next++]?.()
    queueMicrotask(step)
  }

  return () => {
    if (!isUnderWay) {
      isUnderWay = true
      begun = now()
      setImmediate(begin)
    }
    if (next === waiting.length && now() - begun < longest) return undefined
    return new Promise(resolve => waiting.push(resolve))
  }
}
