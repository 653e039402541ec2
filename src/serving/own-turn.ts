// Runs long pieces of work one per turn of the event loop, so that short requests run in between.

const waiting: (() => void)[] = []

/** Resolves in a turn that no other piece gets. */
export function ownTurn(): Promise<void> {
  return new Promise(resolve => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(next)
  })
}

/** Milliseconds of work in a turn of the event loop after which a pause is due. */
const longest = 10

/** For loops of unknown length: undefined means continue, a promise is the next turn of the loop. */
export type Pause = () => Promise<void> | undefined

export function openPause(now: () => number): Pause {
  let begun: number | undefined
  return () => {
    if (begun !== undefined) return now() - begun < longest ? undefined : ownTurn()
    begun = now()
    setImmediate(() => {
      begun = undefined
    })
    return undefined
  }
}

/** Scheduled from inside a turn, an immediate runs in the next one, after new input was read. */
function next(): void {
  waiting[0]?.()
  waiting.shift()
  if (waiting.length > 0) setImmediate(next)
}
