// The two limits of the cost prover, and the measurement of a request against them.

import { slowness } from '../../support/cpu-time.ts'
import { type Cost, measure } from './meter.ts'
import type { System } from './system.ts'

/** Milliseconds of uninterrupted CPU time on the main thread, on the reference machine of cpu-time.ts. */
const longestPiece = 50
/** Maximum growth of CPU time for twice the size. */
const mostGrowth = 2.5
/** Below this many milliseconds on the reference machine, most of the time does not depend on the body. */
const small = 8
/** Garbage collection and other load only add time, so the best of several measurements counts. Tests run beside others. */
const tries = 15

export type Input = {
  readonly method: string
  readonly url: string
  readonly type: string
  readonly body: string | Uint8Array
}
export type Judged = { readonly whole: Cost; readonly problem: string | undefined }

export const ask = (system: System, { method, url, type, body }: Input) =>
  system.ask({ method, url, headers: { authorization: `Bearer ${system.adminKey}`, 'content-type': type }, body })

/** Measures again only while a limit seems to be exceeded. Without `half`, only the longest piece counts. */
export async function judge(
  half: (() => Promise<unknown>) | undefined,
  whole: () => Promise<unknown>,
): Promise<Judged> {
  const [less, more]: [Cost[], Cost[]] = [[], []]
  for (;;) {
    if (half) less.push(await measure(half))
    more.push(await measure(whole))
    const found = best(more)
    if (!problemOf(less, found)) return { whole: found, problem: undefined }
    // On a slower machine, every limit in milliseconds would fail requests that are not costly. Measuring this takes a while,
    // so only a limit that seems to be exceeded is scaled.
    const slower = slowness()
    const problem = problemOf(less, found, slower)
    // Two results far above the limit need no further measurement. One may be a pause of the machine.
    const isFar = more.length > 1 && found.longest > 4 * longestPiece * slower
    if (!problem || more.length === tries || isFar) return { whole: found, problem }
  }
}

const best = (costs: readonly Cost[]): Cost => ({
  total: Math.min(...costs.map(one => one.total)),
  longest: Math.min(...costs.map(one => one.longest)),
})

/** The problem of one measured piece of work, if it has no half to compare with. */
export const pieceProblem = ({ longest }: Cost): string | undefined =>
  longest > longestPiece && longest > longestPiece * slowness() ? `${longest.toFixed(0)} ms without a break` : undefined

/**
 * The CPU clock may have steps of several milliseconds. So the mean of the half counts, because a single short one would look like
 * steep growth.
 */
function problemOf(less: readonly Cost[], { total, longest }: Cost, slower = 1): string | undefined {
  if (longest > longestPiece * slower) return `${longest.toFixed(0)} ms without a break`
  const half = less.reduce((sum, one) => sum + one.total, 0) / less.length
  if (total > mostGrowth * Math.max(half, small * slower))
    return `${half.toFixed(0)} ms for half the size, ${total.toFixed(0)} ms for the whole`
  return undefined
}
