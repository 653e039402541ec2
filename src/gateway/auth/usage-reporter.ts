// Reports the last use of keys to the management API, in batches, one time per key (D19).

import { setTimeout } from 'node:timers/promises'

export interface UsageReporter {
  used(keyUid: string): void
  /** Sends pending reports within a short time, and stops. Returns how many keys were not reported. */
  close(): Promise<number>
}

export type UsageReporterOptions = {
  readonly send: (uses: readonly { readonly uid: string; readonly time: number }[]) => Promise<void>
  readonly now: () => number
  readonly failed: (error: unknown) => void
  readonly every?: number
  /** Milliseconds for the last report. */
  readonly closeWithin?: number
}

const batchSize = 500
/** The number of keys to remember while the management API is unreachable. */
const maxKeys = 10_000

export function openUsageReporter(options: UsageReporterOptions): UsageReporter {
  const { send, now, failed, every = 10_000, closeWithin = 3000 } = options
  const uses = new Map<string, number>()
  let flushing: Promise<void> = Promise.resolve()

  async function flush(): Promise<void> {
    const batch = Array.from(uses, ([uid, time]) => ({ uid, time })).slice(0, batchSize)
    if (batch.length === 0) return
    try {
      await send(batch)
    } catch (error) {
      return failed(error) // they stay queued for the next report
    }
    for (const { uid, time } of batch) if (uses.get(uid) === time) uses.delete(uid)
    if (batch.length === batchSize) await flush()
  }
  const timer = setInterval(() => {
    flushing = flushing.then(flush)
  }, every).unref()

  return {
    used(keyUid) {
      if (uses.size < maxKeys || uses.has(keyUid)) uses.set(keyUid, now())
    },
    async close() {
      clearInterval(timer)
      // Waiting for an unreachable management API, request by request, would take longer than a supervisor waits.
      const end = new AbortController()
      const late = setTimeout(closeWithin, undefined, { signal: end.signal }).catch(() => {})
      await Promise.race([flushing.then(flush), late])
      end.abort()
      return uses.size
    },
  }
}
