// Several loops side by side: a name always runs in the same one, so it is worked on once at a time, and one that is slow
// holds up few others. Failures are tried again ever more slowly, and not all at the same moment.

import { ApiError } from '../../api/errors.ts'
import { startLoop } from '../../reconcile/work-queue.ts'

export type LanesOptions = {
  readonly lanes: number
  /** Rejects: again later. A number: look again after so many milliseconds. */
  readonly work: (name: string) => Promise<number | undefined>
  readonly failed: (name: string, error: unknown, attempts: number) => void
  /** From 0 to 1. */
  readonly random: () => number
}

export interface Lanes {
  add(name: string): void
  /** What a name has failed with so far makes it wait no longer, should it fail again. */
  resetBackoff(name: string): void
  /** Names that wait or are worked on; those that wait for their next try do not count. */
  readonly depth: number
  /** Names whose last try failed. */
  readonly failing: ReadonlyMap<string, { readonly attempts: number; readonly error: unknown }>
  idle(): Promise<void>
  stop(): Promise<void>
}

const first = 100
const slowest = 60_000
/** A server that asks to be left alone for longer is asked all the same. */
const longestAsked = 300_000

export function startLanes({ lanes, work, failed, random }: LanesOptions): Lanes {
  const failing = new Map<string, { attempts: number; error: unknown }>()
  const pending = new Set<string>()
  const reconcile = async (name: string): Promise<number | undefined> => {
    pending.delete(name)
    under++
    try {
      const again = await work(name)
      failing.delete(name)
      return again
    } catch (error) {
      const attempts = (failing.get(name)?.attempts ?? 0) + 1
      failing.set(name, { attempts, error })
      failed(name, error, attempts)
      const asked = error instanceof ApiError ? (error.status.details?.retryAfterSeconds ?? 0) * 1000 : 0
      const wait = Math.min(slowest, first * 2 ** Math.min(attempts - 1, 20))
      return Math.max(Math.min(asked, longestAsked), wait * (0.5 + random()))
    } finally {
      under--
    }
  }
  let under = 0
  const loops = Array.from({ length: lanes }, () => startLoop({ reconcile, failed: () => {} }))
  return {
    add(name) {
      pending.add(name)
      loops[laneOf(name, lanes)]?.add(name)
    },
    resetBackoff(name) {
      const failure = failing.get(name)
      if (failure) failure.attempts = 0
    },
    get depth() {
      return pending.size + under
    },
    failing,
    async idle() {
      await Promise.all(loops.map(loop => loop.idle()))
    },
    async stop() {
      await Promise.all(loops.map(loop => loop.stop()))
    },
  }
}

function laneOf(name: string, lanes: number): number {
  let sum = 0
  for (let at = 0; at < name.length; at++) sum = (Math.imul(sum, 31) + name.charCodeAt(at)) | 0
  return (sum >>> 0) % lanes
}
