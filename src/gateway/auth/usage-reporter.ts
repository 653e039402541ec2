// When keys were last used here, told to the service in batches: a use a key, however often it came (D19). gateway.ts notes them.

import { setTimeout } from 'node:timers/promises'

export interface Reports {
  used(keyUid: string): void
  /** Tells what is not told yet, as far as that goes in a moment, and stops. Answers how many keys are left. */
  close(): Promise<number>
}

export type ReportsOptions = {
  readonly send: (uses: readonly { readonly uid: string; readonly time: number }[]) => Promise<void>
  readonly now: () => number
  readonly failed: (error: unknown) => void
  readonly every?: number
  /** Milliseconds for the last of it. */
  readonly closeWithin?: number
}

const atOnce = 500
/** While the service is away the newest use of so many keys is remembered. */
const most = 10_000

export function openReports(options: ReportsOptions): Reports {
  const { send, now, failed, every = 10_000, closeWithin = 3000 } = options
  const uses = new Map<string, number>()
  let telling: Promise<void> = Promise.resolve()

  async function tell(): Promise<void> {
    const batch = Array.from(uses, ([uid, time]) => ({ uid, time })).slice(0, atOnce)
    if (batch.length === 0) return
    try {
      await send(batch)
    } catch (error) {
      return failed(error) // they are still there, and told the next time
    }
    for (const { uid, time } of batch) if (uses.get(uid) === time) uses.delete(uid)
    if (batch.length === atOnce) await tell()
  }
  const timer = setInterval(() => {
    telling = telling.then(tell)
  }, every).unref()

  return {
    used(keyUid) {
      if (uses.size < most || uses.has(keyUid)) uses.set(keyUid, now())
    },
    async close() {
      clearInterval(timer)
      // A service that is away would be waited for, question by question, for longer than whoever ends the program waits.
      const end = new AbortController()
      const late = setTimeout(closeWithin, undefined, { signal: end.signal }).catch(() => {})
      await Promise.race([telling.then(tell), late])
      end.abort()
      return uses.size
    },
  }
}
