// Runs the cost prover in a separate process, so that nothing else uses its main thread, and its sources can have a seeded bug.

import { join } from 'node:path'
import { exec } from '../../support/exec.ts'
import type { Again } from '../../support/server.ts'
import type { Proof } from './run.ts'

export type RowReport = { readonly problem?: string }

const program = join(import.meta.dirname, '../cost-child.ts')
const longest = 30 * 60_000

export const proveCostInChild = () => run([]) as Promise<Proof>
export const measureRowInChild = (row: string, again?: Again) => run(['--row', row], again) as Promise<RowReport>

async function run(args: readonly string[], { imports = [], env = {} }: Again = {}): Promise<unknown> {
  const before = imports.flatMap(file => ['--import', file])
  const options = { env: { ...process.env, ...env }, timeout: longest }
  const { code, stdout, stderr } = await exec(process.execPath, [...before, program, ...args], options)
  if (code !== 0) throw new Error(`the cost prover ended with ${code}: ${stderr.slice(-2000)}`)
  return JSON.parse(stdout)
}
