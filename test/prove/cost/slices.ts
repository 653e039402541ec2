// Tests for slices of the cost prover. `npm run prove` runs all of it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Row } from './rows.ts'
import { proveCost } from './run.ts'
import { openSystem } from './system.ts'

/** Each slice is a pattern for the names of its inputs. */
export function proveSlices(slices: { readonly [what: string]: RegExp }): void {
  for (const [what, chosen] of Object.entries(slices))
    test(`${what}: no long stretch, and at most linear cost`, { timeout: 600_000 }, async context => {
      const { measured, worst, findings } = await proveCost(name => chosen.test(name))
      assert.ok(measured >= 10, `${measured} measured`)
      assert.deepEqual(findings, [])
      const [slowest] = worst
      context.diagnostic(`${measured} inputs; the longest piece, ${slowest?.what}: ${slowest?.longest.toFixed(0)} ms`)
    })
}

/** Runs rows, each on its own server. */
export function proveRows(rows: { readonly [what: string]: Row }): void {
  describe('requests that once stalled the server or filled its memory', () => {
    for (const [what, row] of Object.entries(rows))
      test(what, { timeout: 600_000 }, async () => {
        const system = await openSystem()
        try {
          assert.equal(await row(system), undefined)
        } finally {
          await system.close()
        }
      })
  })
}
