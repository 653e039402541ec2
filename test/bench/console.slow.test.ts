// The bench of the console runs: every figure is measured, with few keys and short rounds.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { findChromium } from '../support/chromium.ts'
import { exec } from '../support/exec.ts'
import { notRun } from '../support/missing-tool.ts'

const run = join(import.meta.dirname, '../../bench/run.ts')

if (!(await findChromium())) notRun('Chromium')
else
  test('the console is measured in a browser, and every event reaches the page', async () => {
    const env = { ...process.env, BENCH_KEYS: '300', BENCH_SECONDS: '0.2' }
    const { code, stdout, stderr } = await exec(process.execPath, [run, 'console'], { env, timeout: 240_000 })
    assert.equal(code, 0, stderr)
    const names = [...stdout.matchAll(/^(?:console)? +([a-z ]+): [\d.,]+ .*\(wanted ≤/gm)].map(([, name]) => name)
    assert.deepEqual(names, ['first load', 'rows', 'filter', 'scrolling', 'heap', 'events'], stdout)
    assert.doesNotMatch(stdout, /NaN|Infinity/)
  })
