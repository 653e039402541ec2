// The replicated consistency prover: three replicas on three members of etcd, clients that move between them, and faults.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { serialize } from 'node:v8'
import type { Again } from '../../support/server.ts'
import { checkConsistency } from '../check-consistency.ts'
import type { Recording, Violation } from '../recording.ts'
import { diceOf } from '../seeded-random.ts'
import { operationsIn, runTraffic } from '../traffic.ts'
import { disturbAccess } from './access.ts'
import { size, startCluster } from './cluster.ts'
import { type FaultName, faultNames, needsLink, needsNetwork, openFaults, shuffled } from './faults.ts'
import { disturbLoneDeletes } from './lone-deletes.ts'
import { openBalancer } from './moving-client.ts'
import { disturbSigningKeys } from './signing-keys.ts'

export type ReplicatedOptions = {
  readonly seed: string
  /** Answered requests, without 503. */
  readonly operations: number
  /** In this order, once; absent: all in random order, again and again. */
  readonly faults?: readonly FaultName[]
  /** Whether this process is in a network namespace of its own. */
  readonly isInNamespace: boolean
  readonly begin?: Again
  /** A directory for the recording and the logs, to look into a violation. */
  readonly keep?: string
}

export type ReplicatedReport = {
  readonly requests: number
  readonly codes: { readonly [code: string]: number }
  readonly events: number
  readonly watches: number
  /** Reads of users whose access changes. */
  readonly reads: number
  /** How often controllers created a key. */
  readonly created: number
  /** Of objects that nobody else writes. */
  readonly deletes: number
  readonly faults: { readonly [name: string]: number }
  readonly seconds: number
  readonly violations: readonly Violation[]
}

/** Reads with resourceVersion=0 are at most so old. The rest is for the timer that notes ticks. */
const maxAge = 5050
/** A run in which nothing is answered for so long has failed. */
const stuckMs = 120_000

export async function runReplicated(options: ReplicatedOptions): Promise<ReplicatedReport> {
  const { seed, operations, isInNamespace, begin, keep } = options
  const isLinked = options.faults?.some(needsLink) ?? true
  const linked = isLinked ? diceOf(`${seed}/link`)(size) : undefined
  const cluster = await startCluster({ isInNamespace, begin, linked })
  const started = performance.now()
  try {
    const replicas = cluster.replicas.map(({ server }) => ({ url: server.http, key: server.adminKey }))
    const balancer = openBalancer(replicas, diceOf(`${seed}/balancer`))
    const violations: Violation[] = []
    let [reads, created, deletes] = [0, 0, 0]
    let counts: ReadonlyMap<string, number> = new Map()
    const recording = await runTraffic(balancer.connect, {
      operations: 0,
      seed,
      maxAge,
      patience: begin ? 5000 : 20_000,
      async meanwhile(tape) {
        const access = await disturbAccess(replicas, tape, seed)
        const signingKeys = disturbSigningKeys(cluster, diceOf(`${seed}/signing keys`))
        const loneDeletes = disturbLoneDeletes(openBalancer(replicas, diceOf(`${seed}/lone deletes`)).connect)
        const roll = diceOf(`${seed}/faults`)
        const faults = openFaults({ cluster, tape, roll })
        counts = faults.counts
        const possible = faultNames.filter(name => cluster.network || !needsNetwork(name))
        let isOver = false
        const small = options.faults ? undefined : faults.runSmall(() => isOver)
        try {
          if (options.faults) {
            await reach(() => balancer.answered, operations / 2)
            await faults.run(options.faults)
          } else
            while (balancer.answered < operations)
              for (const name of shuffled(possible, roll)) if (balancer.answered < operations) await faults.run([name])
          await reach(() => balancer.answered, operations)
        } finally {
          isOver = true
          await Promise.all([small, access.stop(), signingKeys.stop(), loneDeletes.stop()])
        }
        reads = access.reads
        created = signingKeys.created
        deletes = loneDeletes.answered
        violations.push(...access.violations, ...signingKeys.violations, ...loneDeletes.violations)
      },
    })
    if (keep !== undefined) writeFileSync(join(keep, 'recording'), serialize(recording))
    violations.push(...checkConsistency(recording), ...strangeCodes(recording))
    for (const { server } of cluster.replicas) violations.push(...strangeOutput(server.said()))
    return {
      requests: operationsIn(recording) + reads + deletes,
      codes: codesIn(recording),
      events: recording.sessions.reduce((sum, session) => sum + session.told.length, 0),
      watches: recording.sessions.length,
      reads,
      created,
      deletes,
      faults: Object.fromEntries(counts),
      seconds: (performance.now() - started) / 1000,
      violations,
    }
  } finally {
    if (keep !== undefined)
      for (const [index, { server }] of cluster.replicas.entries())
        writeFileSync(join(keep, `replica-${index}.log`), server.said())
    await cluster.close()
  }
}

async function reach(count: () => number, wanted: number): Promise<void> {
  let [last, since] = [count(), performance.now()]
  while (count() < wanted) {
    await pause(50)
    if (count() > last) [last, since] = [count(), performance.now()]
    if (performance.now() - since > stuckMs) throw new Error('the replicas do not answer any more')
  }
}

/** 0: no answer. 410 is checked against the compactions. */
const expected = new Set([0, 200, 201, 404, 409, 410, 503, 504])

function strangeCodes({ writes, gets }: Recording): Violation[] {
  const strange = [...writes, ...gets].filter(({ code }) => !expected.has(code))
  return strange.map(({ name, code }) => ({
    rule: 'answer',
    text: `a request about ${name} was answered with ${code}`,
  }))
}

/** Errors that are not from the program's own log, which is JSON: uncaught ones, and those of the client of etcd. */
function strangeOutput(output: string): Violation[] {
  const strange = output.split('\n').find(line => !line.startsWith('{') && /^E |Error|Unhandled/.test(line))
  return strange === undefined ? [] : [{ rule: 'output', text: strange }]
}

function codesIn({ writes, gets, lists }: Recording): { readonly [code: string]: number } {
  const codes: { [code: string]: number } = { 200: lists.length }
  for (const { code } of [...writes, ...gets]) codes[code] = (codes[code] ?? 0) + 1
  return codes
}
