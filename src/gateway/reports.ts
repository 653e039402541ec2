// When keys were last used here, told to the service in batches: a use a key, however often it came (D19). gateway.ts notes them.

export interface Reports {
  used(keyUid: string): void
  /** Tells what is not told yet, and stops. */
  close(): Promise<void>
}

export type ReportsOptions = {
  readonly send: (uses: readonly { readonly uid: string; readonly time: number }[]) => Promise<void>
  readonly now: () => number
  readonly failed: (error: unknown) => void
  readonly every?: number
}

const atOnce = 500
/** While the service is away the newest use of so many keys is remembered. */
const most = 10_000

export function openReports({ send, now, failed, every = 10_000 }: ReportsOptions): Reports {
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
      await telling.then(tell)
    },
  }
}
