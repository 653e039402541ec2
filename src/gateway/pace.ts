// How long a client may take for a piece of an answer. Who takes nothing would hold a place among those under way for ever. passing.ts and forward.ts ask.

import type { Forwarding } from './outgoing.ts'

export type Pace = {
  /** The client has to take something before it is given more. */
  waits(): void
  /** It did. */
  took(): void
}

/** Streams are counted apart, and may be followed as slowly as anybody likes. */
const none: Pace = { waits: () => {}, took: () => {} }

/** `late`: it took too long for one piece, of some 64 KiB. */
export function openPace({ exchange, route, timeouts }: Forwarding, late: () => void): Pace {
  if (route.isLong) return none
  let timer: NodeJS.Timeout | undefined
  const took = () => {
    clearTimeout(timer)
    timer = undefined
  }
  exchange.onClosed(took)
  return {
    waits() {
      if (!exchange.closed) timer ??= setTimeout(late, timeouts.take).unref()
    },
    took,
  }
}
