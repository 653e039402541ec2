// Runs generated programs in the real sandbox: each is answered, memory stays, and the next evaluation is right.

import assert from 'node:assert/strict'
import { openSandbox } from '../../src/vcluster/patch/sandbox.ts'
import { probe } from './sandbox-attacks.ts'
import { chanceOf, programOf } from './sandbox-programs.ts'

const MOST_MEMORY = 150 * 1024 * 1024

/** Answers how many gave a value and how many each reason to fail. */
export async function runPrograms(count: number, seed: number): Promise<{ readonly [outcome: string]: number }> {
  const before = process.memoryUsage.rss()
  const sandbox = openSandbox({ workers: 2 })
  const outcomes: { [outcome: string]: number } = {}
  const chance = chanceOf(seed)
  const context = { vcluster: { name: 'vc' }, virtualObject: { a: [1] }, hostObject: null }
  const run = async (expression: string) => {
    const values = [{ x: ['y'] }, 'text']
    const results = await sandbox.evaluate({ expression, values, context, paths: ['a', 'b'] })
    assert.equal(results.length, values.length, expression)
    for (const result of results) {
      const outcome = 'reason' in result ? result.reason : 'value'
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    }
    const [next] = await sandbox.evaluate({ expression: probe.expression, values: [1] })
    assert.deepEqual(next, { value: probe.value }, `the evaluation after: ${expression}`)
    const grown = process.memoryUsage.rss() - before
    assert.ok(grown < MOST_MEMORY, `${Math.round(grown / 2 ** 20)} MiB more after: ${expression}`)
  }
  try {
    for (let done = 0; done < count; done += 2) await Promise.all([run(programOf(chance)), run(programOf(chance))])
  } finally {
    await sandbox.close()
  }
  return outcomes
}
