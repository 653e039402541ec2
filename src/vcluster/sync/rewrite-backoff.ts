// Delays repeated writes of the same object: the first retries run at once, later ones back off, so that a server which keeps changing an
// object is not written to at full speed. A change by somebody else is not delayed.

type Turn = { readonly count: number; readonly until: number; readonly version: string | undefined }

export interface RewriteBackoff {
  /** Milliseconds that the object must still wait; 0: none. `version`: the version of the virtual object. */
  early(name: string, version: string | undefined): number
  /** After a write: milliseconds until the next one; undefined: none is due. `version`: the version that was read or written. */
  next(name: string, isAgain: boolean, version: string | undefined): number | undefined
}

/** The number of retries without a delay. */
const atOnce = 3
const slowest = 30_000

export function openRewriteBackoff(ticks: () => number): RewriteBackoff {
  const turns = new Map<string, Turn>()
  return {
    early(name, version) {
      const turn = turns.get(name)
      if (!turn) return 0
      if (turn.version === version) return Math.max(0, turn.until - ticks())
      turns.delete(name)
      return 0
    },
    next(name, isAgain, version) {
      if (!isAgain) return void turns.delete(name)
      const count = (turns.get(name)?.count ?? 0) + 1
      const delay = count > atOnce ? Math.min(slowest, 100 * 2 ** Math.min(count - atOnce, 20)) : 0
      turns.set(name, { count, until: ticks() + delay, version })
      return delay
    },
  }
}
