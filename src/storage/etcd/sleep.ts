// Pauses of a loop that an event can end early.

import { setTimeout as pause } from 'node:timers/promises'

export type Sleep = {
  /** Ends at once if `wake` was called since the last pause. */
  sleep(ms: number): Promise<void>
  wake(): void
}

export function openSleep(): Sleep {
  let isAwake = false
  let end = () => {}
  return {
    async sleep(ms) {
      const ending = new AbortController()
      end = () => ending.abort()
      if (!isAwake) await pause(ms, undefined, { signal: ending.signal, ref: false }).catch(() => {})
      isAwake = false
    },
    wake() {
      isAwake = true
      end()
    },
  }
}
