// The whole gate, `npm test`: types, format and lint, promises, dead code, then every test. One line a step.

import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'
import { findDesktop } from './support/desktop.ts'
import { exec } from './support/exec.ts'
import { openFiu } from './support/fiu.ts'
import { findKubectls } from './support/kubectl.ts'

type Step = { readonly name: string; run(): Promise<{ readonly code: number; readonly text: string }> }

const root = join(import.meta.dirname, '..')
const cores = 2
const compiled = join(root, 'node_modules/.cache/compiled')

/** Longest first; the test tools are looked up here so that no test waits for a download. */
const steps: Step[] = [
  tool('types', 'tsc', '--pretty', 'false'),
  { name: 'kubectl, libfiu', run: fetchTools },
  { name: 'shells, keyring', run: fetchShells },
  tool('promises', 'oxlint', '--type-aware', '--deny-warnings'),
  tool('dead code', 'knip', '--no-progress', '--no-config-hints'),
  tool('format and lint', 'biome', 'ci', '--colors=off', '--error-on-warnings', '--diagnostic-level=warn', '.'),
]

const failed = await runSteps()
const code = await runTests()
process.exitCode = failed.length ? 1 : code

function tool(name: string, program: string, ...args: string[]): Step {
  return {
    name,
    async run() {
      const file = join(root, 'node_modules/.bin', program)
      const { code, stdout, stderr } = await exec(file, args, { cwd: root, timeout: 120_000 })
      return { code, text: stdout + stderr }
    },
  }
}

/** Missing tools are not this step's failure: the tests that need them say so. */
async function fetchTools() {
  const found = await findKubectls()
  await (await openFiu())?.close()
  return { code: 0, text: found.map(one => one.version).join(', ') || 'none' }
}

async function fetchShells() {
  return { code: 0, text: (await findDesktop())?.tree ?? 'none' }
}

async function runSteps(): Promise<string[]> {
  const failed: string[] = []
  const queue = steps.values()
  const worker = async () => {
    for (const step of queue) {
      const start = performance.now()
      const { code, text } = await step.run()
      const seconds = ((performance.now() - start) / 1000).toFixed(1)
      console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${step.name.padEnd(16)} ${seconds.padStart(5)} s`)
      if (code === 0) continue
      failed.push(step.name)
      console.log(text.trimEnd())
    }
  }
  await Promise.all(Array.from({ length: cores }, worker))
  return failed
}

/** Node's own runner; its summary is held back so that it closes the output, whatever failed. */
async function runTests(): Promise<number> {
  const files = globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root, exclude: ['test/prove/**'] })
  const child = spawn(
    process.execPath,
    ['--test', `--test-concurrency=${cores}`, '--test-reporter=spec', ...files.toSorted()],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      // What one file compiles, the others need not.
      env: { ...process.env, NODE_COMPILE_CACHE: compiled, ...(process.stdout.isTTY && { FORCE_COLOR: '1' }) },
    },
  )
  const summary: string[] = []
  const ended = new Promise<number>(resolve => child.on('close', code => resolve(code ?? 1)))
  for await (const line of createInterface({ input: child.stdout }))
    if (/^ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) \d/.test(stripVTControlCharacters(line)))
      summary.push(line)
    else console.log(line)
  const code = await ended
  if (failed.length) console.log(`FAILED before the tests: ${failed.join(', ')}`)
  console.log(summary.join('\n'))
  return code
}
