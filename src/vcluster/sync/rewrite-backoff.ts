// Backs off when a server keeps changing what the syncer writes. A change by somebody else resets the back-off.

type Entry = { readonly count: number; readonly until: number; readonly version: string | undefined }

export interface RewriteBackoff {
  /** Milliseconds until the next pass. `version` is the current version of the virtual object. */
  remaining(name: string, version: string | undefined): number
  /** Milliseconds until another pass, or undefined if none is needed. `version` is what the last pass read or wrote. */
  next(name: string, isAgain: boolean, version: string | undefined): number | undefined
}

/** Passes without a delay. */
const immediate = 3
const maxDelay = 30_000

export function openRewriteBackoff(ticks: () => number): RewriteBackoff {
  const entries = new Map<string, Entry>()
  return {
    remaining(name, version) {
      const entry = entries.get(name)
      if (!entry) return 0
      if (entry.version === version) return Math.max(0, entry.until - ticks())
      entries.delete(name)
      return 0
    },
    next(name, isAgain, version) {
      if (!isAgain) return void entries.delete(name)
      const count = (entries.get(name)?.count ?? 0) + 1
      const delay = count > immediate ? Math.min(maxDelay, 100 * 2 ** Math.min(count - immediate, 20)) : 0
      entries.set(name, { count, until: ticks() + delay, version })
      return delay
    },
  }
}
