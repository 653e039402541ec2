// `npm run bench:profile`: where the main thread of the server spends its time during gets, creates, patches and applies.
// It prints a table for docs/BENCH.md: the share of each module, with the work of Node that the module caused.

import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { drive } from './load.ts'
import { remove, startServer } from './processes.ts'
import { jobs, prepare } from './rates.ts'

const seconds = Number(process.env['BENCH_SECONDS'] ?? 5)
const rows = 15

type Frame = { readonly functionName: string; readonly url: string }
type Node = { readonly id: number; readonly callFrame: Frame; readonly children?: readonly number[] }
type Profile = {
  readonly nodes: readonly Node[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const profiled = ['get one', 'durable create', 'patch', 'apply']
const tables = new Map<string, ReadonlyMap<string, number>>()
for (const job of jobs.filter(({ name }) => profiled.includes(name))) {
  const output = mkdtempSync(join(tmpdir(), 'platform-profile-'))
  const server = await startServer(undefined, [], ['--cpu-prof', `--cpu-prof-dir=${output}`, '--cpu-prof-interval=250'])
  await prepare(server)
  const load = { ...job.load, key: server.key, url: server.url, seconds, connections: job.connections }
  // The first run compiles and warms up. Only the second half of the samples counts.
  for (let run = 0; run < 3; run++) await drive(load)
  await server.stop()
  tables.set(job.name, sharesOf(readLargest(output)))
  remove(server.directory)
  remove(output)
}
print()

/** The profile of the main thread is the largest: other threads mostly wait. */
function readLargest(directory: string): Profile {
  const files = readdirSync(directory).map(name => join(directory, name))
  const [largest = ''] = files.toSorted((one, other) => statSync(other).size - statSync(one).size)
  return JSON.parse(readFileSync(largest, 'utf8')) as Profile
}

/** The share of each module in the time of the main thread, without idle time. */
function sharesOf({ nodes, samples, timeDeltas }: Profile): ReadonlyMap<string, number> {
  const byId = new Map(nodes.map(node => [node.id, node]))
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id] as const)))
  const moduleOf = (id: number): string => {
    const own = byId.get(id)?.callFrame.functionName ?? ''
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const path = /\/(?:src|dist)\/(.+)\.[jt]s$/.exec(byId.get(at)?.callFrame.url ?? '')?.[1]
      if (path) return path.split('/').slice(0, 2).join('/')
    }
    return own.startsWith('(') ? own : 'Node: HTTP, TLS, streams'
  }
  const times = new Map<string, number>()
  let all = 0
  for (const [index, id] of samples.entries()) {
    const took = timeDeltas[index] ?? 0
    if (index < samples.length / 2 || byId.get(id)?.callFrame.functionName === '(idle)') continue
    const name = moduleOf(id)
    times.set(name, (times.get(name) ?? 0) + took)
    all += took
  }
  return new Map([...times].map(([name, time]) => [name, (time / all) * 100]))
}

function print(): void {
  const names = [...tables.keys()]
  const sum = (name: string) => names.reduce((total, job) => total + (tables.get(job)?.get(name) ?? 0), 0)
  const modules = [...new Set([...tables.values()].flatMap(shares => [...shares.keys()]))]
  console.log(`| module | ${names.join(' | ')} |\n|---|${'---|'.repeat(names.length)}`)
  for (const name of modules.toSorted((one, other) => sum(other) - sum(one)).slice(0, rows))
    console.log(`| ${name} | ${names.map(job => `${(tables.get(job)?.get(name) ?? 0).toFixed(1)} %`).join(' | ')} |`)
}
