// Runs a server or a store with one seeded bug after the other, and reports which check found it, and how fast.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openFiu } from '../support/fiu.ts'
import { startServer } from '../support/server.ts'
import { begin } from './begin-bug.ts'
import { bugs } from './bugs.ts'
import { checkConsistency } from './check-consistency.ts'
import { measureRowInChild } from './cost/in-child.ts'
import { costBugs } from './cost-bugs.ts'
import { runDiskFault } from './disk-faults.ts'
import { edited } from './edits.ts'
import { runInChild } from './escalation/in-child.ts'
import { replicaBugs } from './replica-bugs.ts'
import { needsNetwork } from './replicated/faults.ts'
import { runReplicatedInChild } from './replicated/in-child.ts'
import { runStoreCrashes } from './store-crashes.ts'
import { connectTo, operationsIn, runTraffic } from './traffic.ts'

/** `found`: the violated rule; undefined: the bug was not found. */
export type Hunt = {
  readonly name: string
  readonly by: string
  readonly found: string | undefined
  readonly text: string
  /** Requests, kills, steps of the escalation prover, or rows of the cost prover. */
  readonly after: number
  readonly seconds: number
}

/** Numbers of requests per round. A bug that the first round does not find gets the next. */
const rounds = [2000, 8000, 40_000]
const kills = 60
const sources = join(import.meta.dirname, '../../src')

export async function huntBug(name: string, seed: string): Promise<Hunt> {
  const bug = bugs[name]
  if (!bug) throw new Error(`there is no bug "${name}"`)
  const started = performance.now()
  const hunts = {
    traffic: huntInTraffic,
    'store crashes': huntInCrashes,
    'failing disk': huntOnDisk,
    escalation: huntEscalation,
    cost: huntCost,
    replicas: huntOnReplicas,
  }
  const caught = await hunts[bug.by](name, seed)
  return { name, by: bug.by, ...caught, seconds: (performance.now() - started) / 1000 }
}

type Caught = Pick<Hunt, 'found' | 'text' | 'after'>

async function huntInTraffic(name: string, seed: string): Promise<Caught> {
  let after = 0
  for (const operations of rounds) {
    const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off'], begin: begin(name) })
    try {
      const recording = await runTraffic(connectTo({ url: server.http, key: server.adminKey }), {
        operations,
        seed: `${seed}/${operations}`,
        patience: 2000,
      })
      after += operationsIn(recording)
      const [first] = checkConsistency(recording)
      if (first) return { found: first.rule, text: first.text, after }
    } finally {
      await server.kill()
    }
  }
  return { found: undefined, text: 'nothing was noticed', after }
}

async function huntInCrashes(name: string, seed: string): Promise<Caught> {
  let died = 0
  try {
    await runStoreCrashes({ kills, seed, begin: begin(name), died: () => died++ })
    return { found: undefined, text: 'nothing was noticed', after: died }
  } catch (error) {
    return { found: 'crash', text: error instanceof Error ? error.message : String(error), after: died }
  }
}

async function huntOnDisk(name: string, seed: string): Promise<Caught> {
  const fiu = await openFiu()
  if (!fiu) return { found: undefined, text: 'libfiu is missing', after: 0 }
  try {
    const { requests, problems } = await runDiskFault(fiu, 'fsync fails (EIO)', seed, begin(name))
    const [first] = problems
    return { found: first?.rule, text: first?.text ?? 'nothing was noticed', after: requests }
  } finally {
    await fiu.close()
  }
}

/** The time limit for finding a hole in access control. */
const escalationSeconds = 60

/** An edit of a missing file would change nothing and prove nothing. */
function checkEdits(name: string): void {
  for (const edit of bugs[name]?.edits ?? []) edited(name, edit, readFileSync(join(sources, edit.file), 'utf8'))
}

async function huntEscalation(name: string, seed: string): Promise<Caught> {
  checkEdits(name)
  const options = { seed, steps: Number.MAX_SAFE_INTEGER, seconds: escalationSeconds }
  const { violation, steps } = await runInChild(options, begin(name))
  return { found: violation?.invariant, text: violation?.text ?? 'nothing was noticed', after: steps }
}

async function huntCost(name: string): Promise<Caught> {
  checkEdits(name)
  const row = costBugs[name]?.row ?? ''
  const { problem } = await measureRowInChild(String(row), begin(name))
  return { found: problem, text: problem ?? `no problem with ${row}`, after: 1 }
}

const replicaRounds = [3000, 12_000]

/** Also for the bugs that a single server can have: replicas must not hide them. */
export async function huntOnReplicas(name: string, seed: string): Promise<Caught> {
  checkEdits(name)
  const { faults = [] } = replicaBugs[name] ?? {}
  let after = 0
  for (const operations of replicaRounds) {
    const options = { seed: `${seed}/${operations}`, operations, faults, bug: name }
    const { violations, requests, hasNetwork } = await runReplicatedInChild(options)
    const [first] = violations
    after += requests
    if (first) return { found: first.rule, text: first.text, after }
    if (!hasNetwork && faults.some(needsNetwork))
      return { found: undefined, text: 'not run: network namespaces are missing', after }
  }
  return { found: undefined, text: 'nothing was noticed', after }
}
