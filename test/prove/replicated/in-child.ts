// Runs the replicated prover in a separate process, in namespaces of its own if this machine allows them.

import { join } from 'node:path'
import { findEtcd } from '../../support/etcd.ts'
import { exec } from '../../support/exec.ts'
import { inNamespaces } from '../../support/network.ts'
import type { FaultName } from './faults.ts'
import type { ReplicatedReport } from './run.ts'

export type ChildOptions = {
  readonly seed: string
  readonly operations: number
  /** In this order, once; absent: all in random order, again and again. An empty list: none. */
  readonly faults?: readonly FaultName[]
  readonly bug?: string
}

/** `hasNetwork`: whether links were cut, too. */
export type ChildReport = ReplicatedReport & { readonly hasNetwork: boolean }

const program = join(import.meta.dirname, '../replicated-child.ts')
const [slowestStart, slowestFault, slowestRequest] = [240_000, 60_000, 20]

export async function runReplicatedInChild({ seed, operations, faults, bug }: ChildOptions): Promise<ChildReport> {
  // A namespace has no connection for a download.
  await findEtcd()
  const args = [
    ...['--seed', seed, '--operations', String(operations)],
    ...(faults ?? []).flatMap(name => ['--fault', name]),
    ...(faults?.length === 0 ? ['--no-faults'] : []),
    ...(bug === undefined ? [] : ['--bug', bug]),
  ]
  const command = [process.execPath, program, ...args]
  const isolated = await inNamespaces([...command, '--namespace'])
  const [file = '', ...rest] = isolated ?? command
  const timeout = slowestStart + (faults?.length ?? 0) * slowestFault + operations * slowestRequest
  const { code, stdout, stderr } = await exec(file, rest, { timeout })
  if (code !== 0) {
    const [reason = stderr.slice(-2000)] = /^reason: .*$/m.exec(stderr) ?? []
    throw new Error(`the replicated prover ended with ${code}: ${reason}`)
  }
  return { ...(JSON.parse(stdout) as ReplicatedReport), hasNetwork: isolated !== undefined }
}
