// Requests take turns when more come at once than can be done in a moment: as many a turn of the event loop as that moment holds, so
// that whoever asks whether the server lives is answered in between. The pipeline waits here.

/** undefined: go on at once. Otherwise the moment to go on. */
export type Turns = () => Promise<void> | undefined

/** Milliseconds of a turn of the event loop after which the rest waits for the next one. */
const longest = 10

export function openFairness(now: () => number): Turns {
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

  /** What goes on is done soon after, so that the steps after it see how long it took; a few may go on before they do. */
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
