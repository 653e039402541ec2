// Limits the rate of writes: they start at even intervals, so that a cluster that returns after a day gets no burst.

export type PaceOptions = {
  readonly perSecond: number
  /** Monotonic clock in milliseconds. */
  readonly ticks: () => number
  /** Resolves early if the signal aborts. */
  readonly wait: (milliseconds: number) => Promise<void>
  readonly signal: AbortSignal
}

/** Resolves when the next write may start, or the signal aborts. */
export function openPace({ perSecond, ticks, wait, signal }: PaceOptions): () => Promise<void> {
  const interval = 1000 / perSecond
  let next = Number.NEGATIVE_INFINITY
  /** The times of the last writes. After a stall, the timers of several writes fire together, so even intervals are not enough. */
  const started = new Array<number>(perSecond).fill(Number.NEGATIVE_INFINITY)
  let oldest = 0
  return async () => {
    const now = ticks()
    const slot = Math.max(now, next)
    next = slot + interval
    if (slot > now) await wait(slot - now)
    while (!signal.aborted) {
      const time = ticks()
      const left = (started[oldest] ?? 0) + 1000 - time
      if (left <= 0) {
        started[oldest] = time
        oldest = (oldest + 1) % perSecond
        return
      }
      await wait(left)
    }
  }
}
