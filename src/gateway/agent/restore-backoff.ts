// Backs off from an object that others keep changing, so that two programs do not overwrite each other at full speed.

export interface RestoreBackoff {
  /** Milliseconds until the object may be written. `digest`: of the wanted object; another one resets the back-off. */
  remaining(key: string, digest: string): number
  wrote(key: string, digest: string): void
  /** Whether others keep changing the object. */
  isContested(key: string): boolean
  /** Forgets objects that others left alone for a while, and returns those that were contested. */
  prune(): string[]
}

/** Writes without a delay. */
const immediate = 5
const [minDelay, maxDelay] = [200, 30_000]
const forgetAfter = 60_000

type Entry = { readonly digest: string; readonly count: number; readonly until: number }

export function openRestoreBackoff(ticks: () => number): RestoreBackoff {
  const entries = new Map<string, Entry>()
  return {
    remaining(key, digest) {
      const entry = entries.get(key)
      return entry?.digest === digest ? Math.max(0, entry.until - ticks()) : 0
    },
    wrote(key, digest) {
      const known = entries.get(key)
      const count = known?.digest === digest ? known.count + 1 : 1
      const delay = count > immediate ? Math.min(maxDelay, minDelay * 2 ** Math.min(count - immediate - 1, 20)) : 0
      entries.set(key, { digest, count, until: ticks() + delay })
    },
    isContested: key => (entries.get(key)?.count ?? 0) > immediate,
    prune() {
      const old = [...entries].filter(([, { until }]) => ticks() - until > forgetAfter)
      for (const [key] of old) entries.delete(key)
      return old.filter(([, { count }]) => count > immediate).map(([key]) => key)
    },
  }
}
