// Requests take turns when more come at once than can be done in a moment: as many a turn of the event loop as that moment holds, so
// that whoever asks whether the server lives is answered in between. The pipeline waits here.

/** undefined: go on at once. Otherwise the moment to go on. */
export type Turns = () => Promise<void> | undefined

/** Milliseconds of a turn of the event loop after which the rest waits for the next one. */
const longest = 10
/** So many are looked at in one turn. */
const most = 64

export function openTurns(now: () => number): Turns {
  let waiting: (() => void)[] = []
  let next = 0
  let begun = 0
  let isUnderWay = false

  const begin = () => {
    begun = now()
  }

  /** Each in a task of its own: what it does is done before the next one is looked at, and counts. */
  const letOneGo = () => {
    if (next < waiting.length && now() - begun < longest) waiting[next++]?.()
  }

  function end(): void {
    if (next > 0) {
      waiting = waiting.slice(next)
      next = 0
    }
    begin() // what comes from here on is of the next turn
    isUnderWay = waiting.length > 0
    if (!isUnderWay) return
    setImmediate(begin)
    for (let count = Math.min(waiting.length, most); count > 0; count--) setImmediate(letOneGo)
    setImmediate(end)
  }

  return () => {
    if (!isUnderWay) {
      isUnderWay = true
      begin()
      setImmediate(end)
    }
    if (next === waiting.length && now() - begun < longest) return undefined
    return new Promise(resolve => waiting.push(resolve))
  }
}
