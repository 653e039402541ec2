// Waits for SIGINT or SIGTERM.

import { setTimeout } from 'node:timers/promises'

/** A terminal and a launcher may both forward one Ctrl-C. So a further signal ends the process at once only after a second. */
export async function shutdownSignal(): Promise<void> {
  const signals = ['SIGINT', 'SIGTERM'] as const
  await new Promise<void>(resolve => {
    const onSignal = () => {
      resolve()
      const ignoreRepeats = () => {
        for (const signal of signals) process.off(signal, onSignal)
      }
      void setTimeout(1000, undefined, { ref: false }).then(ignoreRepeats)
    }
    for (const signal of signals) process.on(signal, onSignal)
  })
}
