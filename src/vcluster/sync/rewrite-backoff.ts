// When a name that has to be looked at again is: at once the first times; a server that never takes what it is sent is not
// asked at full speed for ever. What others changed since is no part of that, and waits for nothing. endpoints.ts asks.

type Turn = { readonly count: number; readonly until: number; readonly version: string | undefined }

export interface Turns {
  /** Milliseconds that the name has to wait yet; 0: none. `version`: the virtual object's that is to be looked at. */
  early(name: string, version: string | undefined): number
  /** After a look: in how many milliseconds the next is due; undefined: it is not. `version`: what was seen, or left, by it. */
  next(name: string, isAgain: boolean, version: string | undefined): number | undefined
}

/** So often in a row. */
const atOnce = 3
const slowest = 30_000

export function openFairness(ticks: () => number): Turns {
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
