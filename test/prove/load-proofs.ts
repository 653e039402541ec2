// The loads and the cost prover as proofs: each runs alone on the machine, because it measures speed.

import { proveCostInChild } from './cost/in-child.ts'
import type { Finding } from './cost/run.ts'
import { counted } from './format-counts.ts'
import { runCostLoad } from './load-cost.ts'
import { runKeys, runMany } from './load-many.ts'
import { runLoad } from './load-steady.ts'
import { runWatchers } from './load-watchers.ts'
import type { Line, Proof, Scale } from './proofs.ts'

const part = 'Load'
const mib = 2 ** 20
const ms = (value: number) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
const inMib = (bytes: number) => `${Math.round(bytes / mib)} MiB`
const line = (what: string, wanted: string, found: string, kept: boolean): Line => ({ what, wanted, found, kept })

export function loadProofsOf(scale: Scale): readonly Proof[] {
  const seconds = Math.max(20, Math.ceil(240 * scale))
  return [
    { part: 'Cost', name: 'inputs', run: costs },
    { part, name: 'requests', run: seed => load(seed, seconds) },
    { part, name: 'watchers', run: watchers },
    { part, name: 'objects', run: () => objects(Math.min(100_000, 100_000 * scale)) },
    { part, name: 'keys', run: () => keys(Math.min(10_000, 10_000 * scale)) },
  ]
}

async function load(seed: string, seconds: number): Promise<Line[]> {
  const { steady, overload } = await runLoad({ seconds, overload: 15, seed })
  const { reads, writes, memory, perSecond, errors } = steady
  const grown = memory.end / memory.warm - 1
  const { live, refused, answered, writers, recovery } = overload
  const what = `2,000 requests a second over TLS for ${seconds} s`
  // A server that does not keep up is not fast, even if its few responses were.
  const isWhole = perSecond >= 1950
  return [
    line(`${what}: rate`, '2,000 a second', `${Math.round(perSecond)} a second`, isWhole),
    line(
      `${what}: reads`,
      'p99 ≤ 20 ms',
      `p50 ${ms(reads.at(0.5))}, p99 ${ms(reads.at(0.99))}`,
      isWhole && reads.at(0.99) <= 20,
    ),
    line(
      `${what}: writes`,
      'p99 ≤ 50 ms',
      `p50 ${ms(writes.at(0.5))}, p99 ${ms(writes.at(0.99))}`,
      isWhole && writes.at(0.99) <= 50,
    ),
    line(`${what}: answers`, 'no error', counted(errors, 'error'), errors === 0),
    line(
      `${what}: memory`,
      'flat within 5%',
      `${inMib(memory.warm)} after warm-up, ${inMib(memory.end)} in the end: ${(grown * 100).toFixed(1)}% more${seconds > 1200 ? '' : ' (half a minute of history)'}`,
      grown <= 0.05,
    ),
    line(`${writers} writers at once`, '429s', `${answered} written, ${refused} answered 429`, refused > 0),
    line(`${writers} writers at once: /livez`, 'p99 ≤ 100 ms', `p99 ${ms(live.at(0.99))}`, live.at(0.99) <= 100),
    line(
      `${writers} writers at once: afterwards`,
      'writes take less than 50 ms again within 5 s',
      `after ${ms(recovery)}`,
      recovery <= 5000,
    ),
  ]
}

/** CPU time is measured, and other work on the same core adds to it. */
async function costs(): Promise<Line[]> {
  const { measured, worst, findings } = await proveCostInChild()
  const [slowest] = worst
  const what = `${counted(measured, 'input')} at the limits of fields and bodies`
  const isLong = ({ problem }: Finding) => problem.includes('without a break')
  const [long, steep] = [findings.find(isLong), findings.find(one => !isLong(one))]
  const told = (finding: Finding | undefined) => finding && `${finding.what}: ${finding.problem}`
  const live = await runCostLoad(
    worst.map(one => one.what),
    25,
  )
  return [
    line(`${what}: growth`, 'at most 2.5-fold for twice the size', told(steep) ?? 'within it', !steep),
    line(
      `${what}: longest piece`,
      'at most 50 ms of CPU without a break',
      told(long) ?? `${ms(slowest?.longest ?? 0)}: ${slowest?.what}`,
      !long,
    ),
    line(
      `the worst ${worst.length} of them on two connections for 25 s: /livez`,
      'p99 ≤ 100 ms',
      `p99 ${ms(live.at(0.99))} of ${counted(live.count, 'probe')}, while ${counted(live.sent, 'request')} were answered`,
      live.at(0.99) <= 100 && live.sent > 0,
    ),
  ]
}

async function watchers(): Promise<Line[]> {
  const { watchers: many, events, told, late, slow, cut, grown } = await runWatchers()
  const what = `${counted(many, 'watcher')}, ${counted(events, 'event')}, 5 a second at most`
  return [
    line(what, 'all told', `${told} of ${many * events} delivered`, told === many * events),
    line(`${what}: delay`, 'p99 ≤ 1 s', `p99 ${ms(late.at(0.99))}`, late.at(0.99) <= 1000),
    line(`${what}: memory`, 'bounded (≤ 256 MiB)', `${Math.round(grown / mib)} MiB more`, grown <= 256 * mib),
    line(`${slow} watchers that never read`, 'cut loose', `${cut} cut loose`, cut === slow),
  ]
}

async function objects(wanted: number): Promise<Line[]> {
  const { objects: many, coldStart, firstPage, selected, resident, errors } = await runMany(wanted)
  const what = `${many} objects`
  return [
    line(`${what}: cold start`, '≤ 3 s', `${coldStart.toFixed(2)} s`, coldStart <= 3 && errors === 0),
    line(`${what}: first page of 500`, '≤ 20 ms', ms(firstPage), firstPage <= 20),
    line(`${what}: a selector that picks 10`, '≤ 20 ms', ms(selected), selected <= 20),
    line(`${what}: memory`, '≤ 512 MiB', `${Math.round(resident / mib)} MiB resident`, resident <= 512 * mib),
  ]
}

async function keys(wanted: number): Promise<Line[]> {
  const { keys: many, teams, gets, errors } = await runKeys({ keys: wanted, teams: wanted / 10 })
  const found = `p99 ${ms(gets.at(0.99))}, ${counted(errors, 'error')}`
  return [line(`${many} keys, ${teams} teams: who am I`, 'p99 ≤ 20 ms', found, gets.at(0.99) <= 20 && errors === 0)]
}
