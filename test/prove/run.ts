// `npm run prove`: tests the documented promises against a running server, prints a table and writes it to docs/PROOF.md.
// `-- --long` repeats the random parts with other seeds for two hours, `-- --share 0.1` takes a tenth of the time. `-- --seed S` repeats a run.
// `-- --part NAME` runs one part, and replaces its section of the page. `-- --only WORD` runs the proofs with that word in their name, and writes no page.

import { readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { loadProofsOf } from './load-proofs.ts'
import { pageOf, type Row } from './page.ts'
import { type Proof, proofsOf } from './proofs.ts'

const usage = `npm run prove -- [--long | --share SHARE] [--seed TEXT] [--part NAME | --only WORD]
  --long    repeats the random parts with other seeds until two hours are over
  --share   a part of the usual, such as 0.1, for a look; loads that are so short say little
  --seed    repeats a run
  --part    one section of the page, such as Escalation
  --only    what has the word in its part or name, such as crashes, traffic, floods, "load requests"; writes no page`

function readFlags() {
  try {
    const { values } = parseArgs({
      options: {
        long: { type: 'boolean' },
        share: { type: 'string' },
        seed: { type: 'string' },
        part: { type: 'string' },
        only: { type: 'string' },
        help: { type: 'boolean' },
      },
    })
    if (values.help) return leave(usage, 0)
    const share = Number(values.share ?? 1)
    if (!(share > 0)) return leave(`--share must be a number above 0\n${usage}`, 2)
    if (values.long && values.share) return leave(`--long and --share say different things\n${usage}`, 2)
    return values
  } catch (error) {
    return leave(`${(error as Error).message}\n${usage}`, 2)
  }
}

function leave(text: string, code: number): never {
  console.error(text)
  process.exit(code)
}

const values = readFlags()
const seed = values.seed ?? String(Date.now())
const scale = Number(values.share ?? 1)
const flags = [
  ...(values.long ? ['--long'] : []),
  ...(values.share ? ['--share', values.share] : []),
  ...(values.part ? ['--part', values.part.includes(' ') ? `"${values.part}"` : values.part] : []),
]
const page = join(import.meta.dirname, '../../docs/PROOF.md')
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  version: string
}
const cores = 2
const longMinutes = 120
/** Another seed makes these parts try something else. */
const randomParts = new Set(['Consistency', 'Crashes', 'Escalation', 'Replicas', 'Sign-in'])

async function prove({ part, name, run }: Proof, seed: string): Promise<Row[]> {
  const started = performance.now()
  const took = () => (performance.now() - started) / 1000
  try {
    const lines = await run(seed)
    return lines.map(line => ({ part, ...line, seconds: took() }))
  } catch (error) {
    const found = error instanceof Error ? error.message.split('\n').slice(0, 3).join(' ') : String(error)
    return [{ part, what: name, wanted: '–', found: found.slice(0, 300), kept: false, seconds: took() }]
  }
}

const show = ({ part, what, found, kept, seconds }: Row) =>
  console.log(`${kept ? 'kept  ' : 'BROKEN'} ${part.padEnd(12)} ${seconds.toFixed(0).padStart(5)} s  ${what}: ${found}`)

/** Every proof once. With `--long`, the random ones again while time remains. */
function* queueOf(proofs: readonly Proof[]): Generator<{ readonly proof: Proof; readonly seed: string }> {
  for (const proof of proofs) yield { proof, seed }
  const again = values.long ? proofs.filter(({ part }) => randomParts.has(part)) : []
  for (let round = 2; again.length; round++)
    for (const proof of again) {
      if (minutesSince(started) > longMinutes) return
      yield { proof, seed: `${seed}/${round}` }
    }
}

const minutesSince = (start: number) => (performance.now() - start) / 60_000

async function proveAll(proofs: readonly Proof[], lanes: number): Promise<Row[]> {
  const rows = new Map<Proof, Row[]>()
  const queue = queueOf(proofs)
  const lane = async () => {
    for (const { proof, seed } of queue) {
      const found = await prove(proof, seed)
      rows.set(proof, [...(rows.get(proof) ?? []), ...found])
      for (const row of found) show(row)
      if (!values.only) record(proofs, rows)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return proofs.flatMap(proof => rows.get(proof) ?? [])
}

/** Writes the parts that are complete, so that a run that is stopped keeps them. */
function record(proofs: readonly Proof[], found: ReadonlyMap<Proof, readonly Row[]>): void {
  const isComplete = (part: string) => proofs.every(proof => proof.part !== part || found.has(proof))
  const rows = proofs.filter(({ part }) => isComplete(part)).flatMap(proof => found.get(proof) ?? [])
  const run = { rows, date: new Date(), version, minutes: minutesSince(started), load: busy, seed }
  const text = flags.length ? ` -- ${flags.join(' ')}` : ''
  writeFileSync(page, pageOf(readFileSync(page, 'utf8'), { ...run, flags: text }))
}

const isWanted = ({ part, name }: Proof) =>
  (!values.part || part === values.part) &&
  (!values.only || `${part} ${name}`.toLowerCase().includes(values.only.toLowerCase()))
const [loads, others] = [loadProofsOf(scale).filter(isWanted), proofsOf(scale).filter(isWanted)]
if (loads.length + others.length === 0) leave(`nothing is called "${values.part ?? values.only}"\n${usage}`, 2)
const started = performance.now()
/** The load of the machine at the start. Figures of a busy machine mean little. */
const [busy = 0] = loadavg()
console.log(`seed ${seed}`)
// The loads first, one at a time, because they measure speed.
const measured = await proveAll(loads, 1)
const proven = await proveAll(others, cores)
const rows = [...proven, ...measured]
const minutes = minutesSince(started)
console.log(
  `${rows.filter(row => row.kept).length} of ${rows.length} kept, ${minutes.toFixed(1)} minutes, seed ${seed}`,
)
process.exit(rows.every(row => row.kept) ? 0 : 1)
