// Waits until the thread has nothing else to do.

/** A shorter turn of the event loop had nothing to do. */
const idleTurnMs = 0.05
const longestWaitMs = 5

const nextTurn = () => new Promise(setImmediate)

/** Resolves after the first turn of the event loop in which nothing happened, or after 5 ms. */
export async function whenIdle(now: () => number = () => performance.now()): Promise<void> {
  const started = now()
  for (let turn = started; turn - started < longestWaitMs; ) {
    await nextTurn()
    const ended = now()
    if (ended - turn < idleTurnMs) return
    turn = ended
  }
}
