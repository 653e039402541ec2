// Runs the prover in a separate process: two of them use two cores, and one can have a seeded bug in its sources.

import { join } from 'node:path'
import { exec } from '../../support/exec.ts'
import type { Again } from '../../support/server.ts'
import type { Tried } from './run.ts'
import type { Invariant } from './violation.ts'

export type ChildOptions = { readonly seed: string; readonly steps: number; readonly seconds?: number }
/** The output of the child: one line of JSON. */
export type ChildReport = {
  readonly steps: number
  readonly seconds: number
  readonly tried?: Tried
  readonly violation?: { readonly invariant: Invariant; readonly text: string }
}

const program = join(import.meta.dirname, '../escalation-child.ts')
/** Milliseconds after which a step counts as hanging. */
const slowestStep = 50
const slowestStart = 120_000

export async function runInChild(options: ChildOptions, { imports = [], env = {} }: Again = {}): Promise<ChildReport> {
  const { seed, steps, seconds } = options
  const args = ['--seed', seed, '--steps', String(steps), ...(seconds ? ['--seconds', String(seconds)] : [])]
  const before = imports.flatMap(file => ['--import', file])
  const timeout = slowestStart + (seconds ? seconds * 1000 : steps * slowestStep)
  const { code, stdout, stderr } = await exec(process.execPath, [...before, program, ...args], {
    env: { ...process.env, ...env },
    // The maximum delay of a timer.
    timeout: Math.min(timeout, 2 ** 31 - 1),
  })
  if (code !== 0) throw new Error(`the escalation prover ended with ${code}: ${stderr.slice(-2000)}`)
  return JSON.parse(stdout) as ChildReport
}
