// Lets work that waits end in order on Ctrl-C, so that it can close what it holds.

import { constants } from 'node:os'

export class Interrupted extends Error {
  /** That of a shell. */
  readonly exitCode: number
  constructor(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP') {
    super(`interrupted by ${signal}`)
    this.name = 'Interrupted'
    this.exitCode = 128 + constants.signals[signal]
  }
}

/** Aborts the signal with Interrupted. `work` must then reject. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController()
  const listeners = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map(signal => {
    const listener = () => ending.abort(new Interrupted(signal))
    process.on(signal, listener)
    return () => process.off(signal, listener)
  })
  try {
    return await work(ending.signal)
  } finally {
    for (const stop of listeners) stop()
  }
}

/** Rejects when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
