// Requests take turns when more come at once than can be done in a moment: a few a turn of the event loop, so that whoever asks
// whether the server lives is answered in between. The pipeline waits here.

/** undefined: go on at once. Otherwise the moment to go on. */
export type Turns = () => Promise<void> | undefined

/** Milliseconds of a turn of the event loop after which the rest waits for the next one. */
const longest = 10
const each = 8

export function openTurns(now: () => number): Turns {
  const waiting: (() => void)[] = []
  let begun = 0
  let isUnderWay = false

  function next(): void {
    begun = now()
    const some = waiting.splice(0, each)
    for (const go of some) go()
    isUnderWay = some.length > 0
    if (isUnderWay) setImmediate(next)
  }

  return () => {
    if (!isUnderWay) {
      isUnderWay = true
      begun = now()
      setImmediate(next)
    }
    if (waiting.length === 0 && now() - begun < longest) return undefined
    return new Promise(resolve => waiting.push(resolve))
  }
}
