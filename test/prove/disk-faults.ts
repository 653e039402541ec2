// The disk fails while clients write, and recovers: writes are rejected meanwhile, nothing is lost or partial, no restart is needed.

import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { type Fiu, pidIn } from '../support/fiu.ts'
import { type Again, type Server, startServer } from '../support/server.ts'
import { checkConsistency } from './check-consistency.ts'
import { isDone } from './merged-history.ts'
import { sightOf, type Team } from './observed-teams.ts'
import type { Recording, Violation, Write } from './recording.ts'
import { connectTo, operationsIn, runTraffic, type Tape } from './traffic.ts'

type Fault = { readonly point: string; readonly errno: number }

export const faults: { readonly [name: string]: Fault } = {
  'fsync fails (EIO)': { point: 'posix/io/sync/fsync', errno: 5 },
  'writes fail (EIO)': { point: 'posix/io/rw/pwrite', errno: 5 },
  'the disk is full (ENOSPC)': { point: 'posix/io/rw/pwrite', errno: 28 },
  'the disk became read-only (EROFS)': { point: 'posix/io/rw/pwrite', errno: 30 },
}

export type Outcome = {
  readonly requests: number
  /** Writes that were rejected with 503. */
  readonly refused: number
  /** Reads that succeeded while the disk failed. */
  readonly reads: number
  /** Milliseconds from the disk's recovery to the next acknowledged write. */
  readonly recovery: number
  readonly problems: readonly Violation[]
}

/** Start and end of the disk failure in ticks, and the times when the disk and the server had recovered. */
type Failing = { from: number; to: number; mended: number; recovered: number }

export async function runDiskFault(fiu: Fiu, name: string, seed: string, begin: Again = {}): Promise<Outcome> {
  const { point, errno } = faults[name] as Fault
  const env = { ...fiu.begin.env, ...begin.env }
  const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off'], begin: { ...begin, env } })
  const failing: Failing = { from: 0, to: 0, mended: 0, recovered: 0 }
  try {
    const pid = await pidIn(server.directory)
    const meanwhile = async (tape: Tape) => {
      await until(() => tape.writes.length > 300)
      await fiu.enable(pid, point, errno)
      failing.from = tape.tick()
      const { length } = tape.gets
      await Promise.race([until(() => refusedIn(tape.writes) >= 50 && tape.gets.length > length + 200), pause(4000)])
      failing.to = tape.tick()
      await fiu.disable(pid, point)
      failing.mended = performance.now()
      await until(() => tape.writes.slice(-200).some(one => one.start > failing.to && isEffect(one)))
      failing.recovered = performance.now()
    }
    const to = connectTo({ url: server.http, key: server.adminKey })
    const recording = await runTraffic(to, { operations: 3000, seed, clients: 16, meanwhile })
    // A server that has not noticed the fault reports nothing: then the rules check its acknowledgements.
    if (refusedIn(recording.writes)) await until(() => /"storage recovered/.test(server.output()))
    const problems = [
      ...checkConsistency(recording),
      ...problemsOf(recording, failing),
      ...logProblems(server.output()),
    ]
    await checkRestart(server)
    return {
      requests: operationsIn(recording),
      refused: refusedIn(recording.writes),
      reads: recording.gets.filter(({ start, end }) => start > failing.from && end < failing.to).length,
      recovery: failing.recovered - failing.mended,
      problems,
    }
  } finally {
    await server.kill()
  }
}

const refusedIn = (writes: readonly Write[]) => writes.filter(({ code }) => code === 503).length
/** Whether the write changed the store. */
const isEffect = (write: Write) => isDone(write) && !write.dryRun && write.op !== 'same'

/** While the disk fails, the server acknowledges no writes, and reads succeed. */
function problemsOf({ writes, gets }: Recording, { from, to }: Failing): Violation[] {
  const early = writes.find(one => one.start > from && one.end < to && isEffect(one))
  const strange = writes.find(({ code }) => ![200, 201, 404, 409, 503].includes(code))
  const unread = gets.find(({ code }) => code !== 200 && code !== 404)
  return [
    ...(early ? [{ rule: 'durable', text: `${early.op} of ${early.name} was acknowledged by a disk that fails` }] : []),
    ...(strange
      ? [{ rule: 'refused', text: `${strange.op} of ${strange.name} was answered with ${strange.code}` }]
      : []),
    ...(unread ? [{ rule: 'reads go on', text: `a get of ${unread.name} was answered with ${unread.code}` }] : []),
  ]
}

/** The log reports the start and the end with the reason, and nothing in between. */
function logProblems(log: string): Violation[] {
  const [why, over] = [log.match(/"storage failed: [^;"]+;/g) ?? [], log.match(/"storage recovered/g) ?? []]
  return why.length > 0 && why.length === over.length && why.length <= 3
    ? []
    : [{ rule: 'logged', text: `${why.length} lines say why storage failed, ${over.length} that it works again` }]
}

/** Reads after a restart must equal reads before it. */
async function checkRestart(server: Server): Promise<void> {
  const state = async () => {
    const { body } = await server.request('GET', '/apis/management.platform.sh/v1/teams')
    return (body.items as Team[]).map(sightOf)
  }
  const before = await state()
  await server.crash({})
  assert.deepEqual(await state(), before)
}

/** Waits for a limited time: otherwise the run fails. */
async function until(isSo: () => boolean): Promise<void> {
  for (const end = Date.now() + 60_000; !isSo(); await pause(5))
    assert.ok(Date.now() < end, 'it did not come to this within a minute')
}
