// The two limits of the cost prover, and how one request is measured against them.

import { type Cost, measure } from './meter.ts'
import type { System } from './system.ts'

/** Milliseconds of CPU time on the main thread without a break. */
export const longestPiece = 50
/** How much more CPU time twice the size may take. */
export const mostGrowth = 2.5
/** Below so many milliseconds, most of the time is not the body's. */
const small = 8
/** Garbage collection and other work of the machine only ever add time, so the best of a few counts. */
const tries = 5

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
  let [less, more] = [none, none]
  for (let count = 0; count < tries; count++) {
    if (half) less = better(less, await measure(half))
    more = better(more, await measure(whole))
    const isClear = more.longest > 4 * longestPiece // by far too long is too long in any try
    if (isClear || !problemOf(half ? less : undefined, more)) break
  }
  return { whole: more, problem: problemOf(half ? less : undefined, more) }
}

const none: Cost = { total: Number.POSITIVE_INFINITY, longest: Number.POSITIVE_INFINITY }
const better = (a: Cost, b: Cost): Cost => ({
  total: Math.min(a.total, b.total),
  longest: Math.min(a.longest, b.longest),
})

function problemOf(half: Cost | undefined, { total, longest }: Cost): string | undefined {
  if (longest > longestPiece) return `${longest.toFixed(0)} ms without a break`
  if (half && total > mostGrowth * Math.max(half.total, small))
    return `${half.total.toFixed(0)} ms for half the size, ${total.toFixed(0)} ms for the whole`
  return undefined
}
