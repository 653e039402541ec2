// Describes the machine of a measurement and its other load, without names.

import { arch, availableParallelism, loadavg } from 'node:os'

export type Machine = {
  readonly cores: number
  readonly arch: string
  readonly node?: string
  /** Load average over the minute before the run, and over its last minute. */
  readonly load?: { readonly before: number; readonly after: number }
  /** Whether the machine was idle otherwise; absent if unknown. */
  readonly quiet?: boolean
  /** Other conditions of the measurement: settings, or a note. */
  readonly noted?: string
}
export type Circumstances = { readonly date: string; readonly machine: Machine }

const mostWhenQuiet = 1
const now = () => Math.round((loadavg()[0] as number) * 100) / 100

/** Call before the run, and `done` after it. */
export function lookAtMachine(): { done(): Circumstances } {
  const before = now()
  const settings = Object.entries(process.env).filter(([name]) => name.startsWith('BENCH_'))
  const noted = settings.map(([name, value]) => `${name}=${value}`).toSorted()
  return {
    done: () => ({
      date: new Date().toISOString().slice(0, 10),
      machine: {
        cores: availableParallelism(),
        arch: arch(),
        node: process.versions.node,
        load: { before, after: now() },
        quiet: before <= mostWhenQuiet,
        ...(noted.length ? { noted: noted.join(', ') } : {}),
      },
    }),
  }
}

/** `2 cores, arm64, Node 24.21.0, load average 0.4 before and 2.1 after`. */
export function toldMachine({ cores, arch, node, load, noted }: Machine): string {
  const loads = load && `load average ${load.before} before and ${load.after} after`
  return [`${cores} cores`, arch, node && `Node ${node}`, loads, noted].filter(Boolean).join(', ')
}
