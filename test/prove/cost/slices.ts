// Tests for slices of the cost prover. `npm run prove` runs it whole.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proveCost } from './run.ts'

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
