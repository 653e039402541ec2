// Queues requests when more arrive than fit into a time slice of the event loop, so that probes and other short requests run in
// between.

/** undefined: continue at once. Otherwise resolves when it is the request's turn. */
export type Fairness = () => Promise<void> | undefined

/** Milliseconds of a turn of the event loop after which the rest waits for the next one. */
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

  /** A released request finishes soon after, so later steps see how long it took. A few more may be released before that. */
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
