// Runs long pieces of work one per turn of the event loop, so that short requests run in between.

const waiting: (() => void)[] = []

/** Resolves in a turn that no other piece gets. */
export function ownTurn(): Promise<void> {
  return new Promise(resolve => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(next)
  })
}

/** Scheduled from inside a turn, an immediate runs in the next one, after new input was read. */
function next(): void {
  waiting[0]?.()
  waiting.shift()
  if (waiting.length > 0) setImmediate(next)
}
