// The proofs, their sizes, and their lines in the table.

import { join } from 'node:path'
import { exec } from '../support/exec.ts'
import { openFiu } from '../support/fiu.ts'
import { startServer } from '../support/server.ts'
import { runPrograms } from '../vcluster/sandbox-programs-run.ts'
import { bugs } from './bugs.ts'
import { checkConsistency } from './check-consistency.ts'
import { runCrashes } from './crashes.ts'
import { faults, runDiskFault } from './disk-faults.ts'
import { runInChild } from './escalation/in-child.ts'
import type { Tried } from './escalation/run.ts'
import { floods, runFlood } from './flooding-clients.ts'
import { counted, say } from './format-counts.ts'
import { runPowerLoss } from './power-loss.ts'
import { runRawFuzz } from './raw-fuzz.ts'
import { runReplicatedInChild } from './replicated/in-child.ts'
import { huntBug } from './seeded-bugs.ts'
import { runShapeFuzz } from './shape-fuzz.ts'
import type { SignInRun } from './sign-in/run.ts'
import { runStoreCrashes } from './store-crashes.ts'
import { connectTo, operationsIn, runTraffic, strangeIn } from './traffic.ts'

/** `wanted` and `found` as text; `kept`: whether the promise holds. */
export type Line = { readonly what: string; readonly wanted: string; readonly found: string; readonly kept: boolean }
/** Long proofs are split into pieces that run in parallel. */
export type Proof = { readonly part: string; readonly name: string; run(seed: string): Promise<readonly Line[]> }
/** 1 is the usual size; 0.1 is for a quick check. */
export type Scale = number

const pieces = <T>(many: number, make: (index: number) => T) => Array.from({ length: many }, (_, index) => make(index))

export function proofsOf(scale: Scale): readonly Proof[] {
  const of = (usual: number) => Math.ceil(usual * scale)
  return [
    // The longest pieces run first, so that no core is idle at the end.
    { part: 'Malice', name: 'programs', run: seed => programs(seed, of(20_000)) },
    ...pieces(escalationPieces, index => escalation(index, of(1_000_000 / escalationPieces))),
    ...pieces(of(5), index => crashes(index, scale < 1 ? of(500) : 100)),
    { part: 'Crashes', name: 'store', run: seed => storeCrashes(seed, of(300)) },
    { part: 'Crashes', name: 'power', run: async seed => powerLoss(seed, of(120)) },
    ...Object.keys(faults).map(name => diskFault(name)),
    ...pieces(of(10), index => consistency(index)),
    ...pieces(of(10), index => replicas(index, scale < 1 ? of(100_000) : 100_000)),
    ...Object.keys(bugs).map(name => seededBug(name)),
    { part: 'Crashes', name: 'syncer', run: () => chaos(syncChaos, of(60)) },
    { part: 'Crashes', name: 'agent', run: () => chaos(agentChaos, of(60)) },
    { part: 'Sign-in', name: 'model', run: seed => signIn(seed, of(1000)) },
    { part: 'Malice', name: 'requests', run: seed => rawRequests(seed, of(50_000)) },
    { part: 'Malice', name: 'texts', run: seed => bentTexts(seed, of(5000)) },
    { part: 'Malice', name: 'floods', run: allFloods },
  ]
}

const crashes = (index: number, kills: number): Proof => ({
  part: 'Crashes',
  name: `server ${index + 1}`,
  async run(seed) {
    const { writes, events, at } = await runCrashes(kills, `${seed}/${index}`)
    const places = new Set(at).size
    const found = `${counted(writes, 'acknowledged write')}, ${counted(events, 'event')}, ${counted(places, 'place')} of death`
    return [
      {
        what: `${counted(kills, 'death')} of a server under 8 writers`,
        wanted: 'nothing lost, halved, doubled',
        found,
        kept: true,
      },
    ]
  },
})

/** In a child, because it changes the clock of its process. */
async function signIn(seed: string, steps: number): Promise<Line[]> {
  const program = join(import.meta.dirname, 'sign-in-child.ts')
  const { code, stdout, stderr } = await exec(process.execPath, [program, seed, String(steps)], { timeout: 3_600_000 })
  if (code !== 0) throw new Error(`the model of sign-in ended with ${code}: ${stderr.slice(-2000)}`)
  const { observed, accepted, violations } = JSON.parse(stdout) as SignInRun
  const what = `${counted(steps, 'step')} of people, a provider and a clock that jumps`
  const found = violations[0] ?? `${counted(observed, 'request')}, ${accepted} accepted`
  return [{ what, wanted: 'access follows the provider', found, kept: violations.length === 0 }]
}

const escalationPieces = 8

const escalation = (index: number, steps: number): Proof => ({
  part: 'Escalation',
  name: `attackers ${index + 1}`,
  async run(seed) {
    const { violation, tried } = await runInChild({ seed: `${seed}/${index}`, steps })
    const what = `${counted(steps, 'step')} of attackers in random worlds`
    const found = violation?.text ?? (tried ? summaryOf(tried) : '')
    return [{ what, wanted: 'nobody reaches more', found, kept: violation === undefined }]
  },
})

function summaryOf({ worlds, writes, dangers }: Tried): string {
  const all = Object.values(writes)
  const sum = (numbers: readonly number[]) => say(numbers.reduce((total, one) => total + one, 0))
  const tries = Object.entries(dangers).map(([danger, times]) => `${danger}: ${say(times)}`)
  const [accepted, refused] = [sum(all.map(one => one.accepted)), sum(all.map(one => one.refused))]
  return `${counted(worlds, 'world')}, ${accepted} requests accepted, ${refused} refused; dangers tried: ${tries.join(', ')}`
}

async function storeCrashes(seed: string, kills: number): Promise<Line[]> {
  const writes = await runStoreCrashes({ kills, seed })
  const found = counted(writes, 'acknowledged write')
  return [{ what: `${counted(kills, 'death')} of a bare store`, wanted: 'nothing lost or halved', found, kept: true }]
}

/** The test of that name, with a longer duration. */
type Chaos = { readonly file: string; readonly variable: string; readonly killed: string }

/** Runs the chaos test for longer. */
async function chaos({ file, variable, killed }: Chaos, seconds: number): Promise<Line[]> {
  const env = { ...process.env, [variable]: String(seconds) }
  const timeout = (seconds + 240) * 1000
  const path = join(import.meta.dirname, '..', file)
  const { code, stdout } = await exec(process.execPath, ['--test', '--test-reporter=spec', path], { env, timeout })
  const [, what = ''] = /✖ (.+)/.exec(stdout) ?? []
  // A run without tests also exits with 0.
  const isKept = code === 0 && /^ℹ pass [1-9]/m.test(stdout)
  const found = isKept ? 'it came to what the model says' : `it ended with ${code}: ${what}`
  const about = `${killed} killed at random for ${seconds} s under change`
  return [{ what: about, wanted: 'the same state as the model', found, kept: isKept }]
}

const syncChaos: Chaos = {
  file: 'e2e/sync-chaos.slow.test.ts',
  variable: 'SYNC_CHAOS_SECONDS',
  killed: 'a syncer and both its servers',
}
const agentChaos: Chaos = {
  file: 'clusters/chaos.slow.test.ts',
  variable: 'AGENT_CHAOS_SECONDS',
  killed: 'the agent of a cluster, the management API and the cluster',
}

function powerLoss(seed: string, commits: number): Line[] {
  const { disks, checkpoints } = runPowerLoss({ commits, seed })
  const found = `${counted(disks, 'disk')} with cut, missing and mixed sectors, ${counted(checkpoints, 'checkpoint')}`
  return [
    { what: `power lost around ${counted(commits, 'commit')}`, wanted: 'the state before or after', found, kept: true },
  ]
}

const diskFault = (name: string): Proof => ({
  part: 'Crashes',
  name,
  async run(seed) {
    const fiu = await openFiu()
    const wanted = '503, reads work, recovers without a restart'
    if (!fiu) return [{ what: name, wanted, found: 'not run: libfiu is missing', kept: false }]
    const { refused, reads, recovery, problems } = await runDiskFault(fiu, name, seed)
    await fiu.close()
    const found = `${counted(refused, 'write')} refused, ${counted(reads, 'read')} answered, a write ${say(recovery)} ms after`
    return [{ what: name, wanted, found: problems[0]?.text ?? found, kept: problems.length === 0 && refused > 0 }]
  },
})

const consistency = (index: number): Proof => ({
  part: 'Consistency',
  name: `traffic ${index + 1}`,
  async run(seed) {
    const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off'] })
    try {
      const to = connectTo({ url: server.http, key: server.adminKey })
      const recording = await runTraffic(to, { operations: 100_000, seed: `${seed}/${index}` })
      const problems = checkConsistency(recording)
      const told = recording.sessions.reduce((sum, session) => sum + session.told.length, 0)
      const found = `${counted(operationsIn(recording), 'request')}, ${counted(told, 'event')} in ${counted(recording.sessions.length, 'watch', 'watches')}`
      const kept = problems.length === 0 && strangeIn(recording) === 0
      return [
        { what: 'requests of 64 clients', wanted: 'one order of writes', found: problems[0]?.text ?? found, kept },
      ]
    } finally {
      await server.kill()
    }
  },
})

/** Without network namespaces no link is cut, so the promise is not kept. */
const replicas = (index: number, operations: number): Proof => ({
  part: 'Replicas',
  name: `replicas ${index + 1}`,
  async run(seed) {
    const report = await runReplicatedInChild({ seed: `${seed}/${index}`, operations })
    const { violations, hasNetwork, requests, events, watches, faults } = report
    const disturbed = Object.entries(faults).map(([name, times]) => `${name}: ${times}`)
    const counts = `${counted(requests, 'request')}, ${counted(events, 'event')} in ${counted(watches, 'watch', 'watches')}`
    const found = hasNetwork ? `${counts}; ${disturbed.join(', ')}` : 'not run: network namespaces are missing'
    return [
      {
        what: 'requests of 64 clients that move between three replicas on three members of etcd',
        wanted: 'one order of writes',
        found: violations[0]?.text ?? found,
        kept: violations.length === 0 && hasNetwork,
      },
    ]
  },
})

const seededBug = (name: string): Proof => ({
  part: 'Seeded bugs',
  name,
  async run(seed) {
    const { by, found, text, after, seconds } = await huntBug(name, seed)
    const unit = by === 'store crashes' ? 'death' : by === 'escalation' ? 'step' : by === 'cost' ? 'row' : 'request'
    const how = found ? `by ${by}, “${found}”, after ${counted(after, unit)}, ${seconds.toFixed(1)} s` : text
    return [{ what: name, wanted: 'found', found: how, kept: found !== undefined }]
  },
})

async function withServer(run: (server: Awaited<ReturnType<typeof startServer>>) => Promise<Line[]>): Promise<Line[]> {
  const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off', '--limits-unknown-keys', '0'] })
  try {
    return await run(server)
  } finally {
    await server.kill()
  }
}

const rawRequests = (seed: string, requests: number) =>
  withServer(async server => {
    const { answers, problems } = await runRawFuzz(server, requests, seed)
    const codes = Object.entries(answers).map(([code, times]) => `${code}: ${say(times)}`)
    const what = `${counted(requests, 'generated request')} over bare sockets`
    return [{ what, wanted: 'no 500, no growth', found: problems[0] ?? codes.join(', '), kept: problems.length === 0 }]
  })

async function bentTexts(seed: string, each: number): Promise<Line[]> {
  const fed = await runShapeFuzz(each, seed)
  return fed.map(({ name, kept, slowest, problems }) => ({
    what: `${say(each)} bent ${name}`,
    wanted: 'read or refused',
    found: problems[0]?.slice(0, 200) ?? `${kept} reached new code, the slowest took ${say(slowest)} ms`,
    kept: problems.length === 0,
  }))
}

const allFloods = () =>
  withServer(async server => {
    const lines: Line[] = []
    for (const name of Object.keys(floods)) {
      const { size, slowest, problems } = await runFlood(server, name)
      const found = problems[0] ?? `the slowest ordinary request took ${say(slowest)} ms`
      lines.push({ what: `${name} × ${say(size)}`, wanted: 'others are served', found, kept: problems.length === 0 })
    }
    return lines
  })

/** By the outcome of an evaluation. Each program is evaluated more than once. */
const endings: { readonly [how: string]: string } = {
  value: 'a value',
  threw: 'an exception',
  result: 'a result that is none',
  time: 'the limit of time',
}

async function programs(seed: string, many: number): Promise<Line[]> {
  const outcome = await runPrograms(many, Number.parseInt(seed, 10) % 2 ** 31 || 1)
  return [
    {
      what: counted(many, 'generated patch program'),
      wanted: 'as V8 runs them',
      found: Object.entries(outcome)
        .map(([how, times]) => `${say(times)} ended with ${endings[how] ?? how}`)
        .join(', '),
      kept: true,
    },
  ]
}
