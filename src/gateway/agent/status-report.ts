// Reports the state of the agent to the management API: at the start, after changes, and every 30 seconds.

export type StatusReportOptions = {
  readonly send: () => Promise<void>
  readonly failed: (error: unknown) => void
  readonly worked: () => void
  /** Resolves early if the signal aborts. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
  readonly signal: AbortSignal
}

export interface StatusReport {
  /** Something has changed: reports within a second. */
  changed(): void
  /** The management API is reachable again: retries a failed report now. */
  reached(): void
  /** Resolves after the signal. */
  readonly ended: Promise<void>
}

const [atMostEvery, atLeastEvery] = [1000, 30_000]
const [minRetry, maxRetry] = [5000, 60_000]

export function openStatusReport({ send, failed, worked, wait, signal }: StatusReportOptions): StatusReport {
  let changing = new AbortController()
  let reaching = new AbortController()
  const until = (milliseconds: number, { signal: early }: AbortController) =>
    wait(milliseconds, AbortSignal.any([signal, early]))
  const run = async () => {
    for (let retry = minRetry; !signal.aborted; ) {
      changing = new AbortController()
      reaching = new AbortController()
      const isSent = await send()
        .then(worked)
        .then(() => true, failed)
      if (isSent) {
        retry = minRetry
        await wait(atMostEvery, signal)
        await until(atLeastEvery - atMostEvery, changing)
      } else {
        await until(retry, reaching)
        retry = Math.min(retry * 2, maxRetry)
      }
    }
  }
  return { changed: () => changing.abort(), reached: () => reaching.abort(), ended: run() }
}
