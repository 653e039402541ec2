// `npm run bench:compare -- --kubeconfig F [--context C]`: alternates the same jobs between another Kubernetes-style server and ours.

import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { driveJob, fill, jobs, label, middle, type Rate, type Run, type Side, type Sizes } from './compare-jobs.ts'
import {
  chooseStock,
  makeNamespace,
  openWay,
  removeAll,
  removeNamespace,
  teamStock,
  type Way,
} from './compare-server.ts'
import { generator } from './load.ts'
import { remove, startServer } from './processes.ts'

const usual: Sizes = { seconds: 3, rounds: 3, objects: 1000, watchers: 200, events: 200 }
const usage = `npm run bench:compare -- --kubeconfig FILE [--context NAME] [--pids N,N] ${Object.entries(usual)
  .map(([name, value]) => `[--${name} ${value}]`)
  .join(' ')}`

const stopping = new AbortController()
// Repeated signals count as one: npm forwards signals that the terminal sent already.
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.on(name, () => {
    if (!stopping.signal.aborted) console.error('stopping: removing the created objects first')
    stopping.abort()
  })

try {
  const { kubeconfig, context, pids, sizes } = readFlags()
  await compare(sizes, openWay(kubeconfig, context), pids)
} catch (error) {
  if (!stopping.signal.aborted) complain(error as Error)
}
if (stopping.signal.aborted) process.exitCode = 130
process.exit()

function isSize(name: keyof Sizes, value: number): boolean {
  return value > 0 && (name === 'seconds' || Number.isInteger(value))
}

function readFlags() {
  const numbers = Object.keys(usual) as (keyof Sizes)[]
  const text = { type: 'string' as const }
  const options = {
    kubeconfig: text,
    context: text,
    pids: text,
    ...Object.fromEntries(numbers.map(name => [name, text])),
  }
  const values = parseArgs({ options }).values as { readonly [name: string]: string | undefined }
  const problems = numbers
    .filter(name => values[name] !== undefined && !isSize(name, Number(values[name])))
    .map(name => `--${name} must be a ${name === 'seconds' ? '' : 'whole '}number above 0`)
  const pids = values['pids']?.split(',').map(Number) ?? []
  if (!pids.every(pid => Number.isInteger(pid) && existsSync(`/proc/${pid}/stat`)))
    problems.push('--pids must be process ids on this machine, separated by commas')
  if (!values['kubeconfig']) problems.push('--kubeconfig is missing: it names the server to compare with')
  if (problems.length) throw new Error([...problems, usage].join('\n'))
  const sizes = Object.fromEntries(numbers.map(name => [name, Number(values[name] ?? usual[name])]))
  return { kubeconfig: values['kubeconfig'] as string, context: values['context'], pids, sizes: sizes as Sizes }
}

async function compare(sizes: Sizes, way: Way, pids: readonly number[]): Promise<void> {
  const name = `bench-${randomBytes(4).toString('hex')}`
  const theirs: Side = { way, stock: await chooseStock(way, name), pids }
  const directory = mkdtempSync(join(tmpdir(), 'platform-compare-'))
  const undo = [async () => remove(directory)]
  try {
    const server = await startServer(directory)
    undo.push(server.stop)
    const ours: Side = { way: openWay(join(directory, 'admin.kubeconfig')), stock: teamStock, pids: [server.pid] }
    if (theirs.stock.kind === 'ConfigMap' && (await makeNamespace(way, name)))
      undo.push(() => removeNamespace(way, name))
    undo.push(() => removeAll(way, theirs.stock, `${label}=${name}`))
    const isByWrk = generator === 'wrk' && Number.isInteger(sizes.seconds) && (await way.bearer()) !== undefined
    const run: Run = { ...sizes, run: name, signal: stopping.signal, isByWrk }
    console.log(`ours: ${ours.stock.kind}s; theirs: ${theirs.stock.kind}s of ${way.server}, labelled ${label}=${name}`)
    console.log(
      `load generator: ${isByWrk ? 'wrk' : 'node'}; ${run.objects} objects; ${run.rounds} rounds of ${run.seconds} s each, by turns, medians`,
    )
    await fill(theirs, run)
    await fill(ours, run)
    await byTurns(ours, theirs, run)
  } finally {
    // The other server first, because our server is deleted with its directory.
    for (const step of undo.toReversed()) await step().catch(complain)
  }
}

function complain(error: Error): void {
  console.error(error.message)
  process.exitCode = 1
}

/** Alternates, so that other load on the machine affects both alike. */
async function byTurns(ours: Side, theirs: Side, run: Run): Promise<void> {
  for (const job of jobs) {
    const rates = { ours: [] as Rate[], theirs: [] as Rate[] }
    for (let round = 0; round < run.rounds && !run.signal.aborted; round++) {
      rates.theirs.push(await driveJob(job, theirs, run))
      rates.ours.push(await driveJob(job, ours, run))
    }
    if (run.signal.aborted) return
    const [one, other] = [middle(rates.ours), middle(rates.theirs)]
    const ratio = (one.perSecond / other.perSecond).toFixed(2)
    console.log(`${job.name.padEnd(16)} ours ${told(one)}   theirs ${told(other)}   ratio ${ratio}`)
  }
}

function told({ perSecond, cpu, errors, why, p99 }: Rate): string {
  const late = p99 === undefined ? '' : ` (p99 ${p99.toFixed(1)} ms)`
  const each = cpu === undefined ? '' : ` ${Math.round(cpu).toString().padStart(5)} µs`
  return `${Math.round(perSecond).toString().padStart(7)}/s${each}${late}${errors ? ` (${errors} errors: ${why})` : ''}`
}
