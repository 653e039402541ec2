// `npm run prove`: everything that is promised, held against a running server; prints one table and writes it to docs/PROOF.md.
// `-- --long` takes hours, `-- --share 0.1` a tenth of the time; `-- --seed S` repeats a run; `-- --only WORD` proves what has the word in its name, and writes nothing.

import { readFileSync, writeFileSync } from 'node:fs'
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { loadProofsOf } from './load-proofs.ts'
import { type Line, type Proof, proofsOf } from './proofs.ts'

const usage = `npm run prove -- [--long | --share PART] [--seed TEXT] [--only WORD]
  --long    hours in place of minutes
  --share   a part of the usual, such as 0.1, for a look; loads that are so short say little
  --seed    repeats a run
  --only    what has the word in its part or name, such as crashes, traffic, floods, "load requests"; writes no page`

function readFlags() {
  try {
    const { values } = parseArgs({
      options: {
        long: { type: 'boolean' },
        share: { type: 'string' },
        seed: { type: 'string' },
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
const scale = values.long ? 20 : Number(values.share ?? 1)
const asked = values.long ? ' -- --long' : values.share ? ` -- --share ${values.share}` : ''
const page = join(import.meta.dirname, '../../docs/PROOF.md')
const cores = 2

type Row = Line & { readonly part: string; readonly name: string; readonly seconds: number }

async function prove({ part, name, run }: Proof): Promise<Row[]> {
  const started = performance.now()
  const took = () => (performance.now() - started) / 1000
  try {
    const lines = await run(seed)
    return lines.map(line => ({ part, name, ...line, seconds: took() }))
  } catch (error) {
    const found = error instanceof Error ? error.message.split('\n').slice(0, 3).join(' ') : String(error)
    return [{ part, name, what: name, wanted: '–', found: found.slice(0, 300), kept: false, seconds: took() }]
  }
}

const show = ({ part, what, found, kept, seconds }: Row) =>
  console.log(`${kept ? 'kept  ' : 'BROKEN'} ${part.padEnd(12)} ${seconds.toFixed(0).padStart(5)} s  ${what}: ${found}`)

async function proveAll(proofs: readonly Proof[], lanes: number): Promise<Row[]> {
  const rows = new Map<Proof, Row[]>()
  const queue = proofs.values()
  const lane = async () => {
    for (const proof of queue) {
      const found = await prove(proof)
      rows.set(proof, found)
      for (const row of found) show(row)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return proofs.flatMap(proof => rows.get(proof) ?? [])
}

const isWanted = ({ part, name }: Proof) =>
  !values.only || `${part} ${name}`.toLowerCase().includes(values.only.toLowerCase())
const [loads, others] = [loadProofsOf(scale).filter(isWanted), proofsOf(scale).filter(isWanted)]
if (loads.length + others.length === 0) leave(`nothing has "${values.only}" in its name\n${usage}`, 2)
const started = performance.now()
/** How much else the machine had to do when it began: figures of a busy one say little. */
const [busy = 0] = loadavg()
console.log(`seed ${seed}`)
// The loads first, and each by itself: nothing else runs while it is measured how quick something is.
const measured = await proveAll(loads, 1)
const proven = await proveAll(others, cores)
const rows = [...proven, ...measured]
const minutes = (performance.now() - started) / 60_000
console.log(
  `${rows.filter(row => row.kept).length} of ${rows.length} kept, ${minutes.toFixed(1)} minutes, seed ${seed}`,
)
if (!values.only) writeFileSync(page, pageOf())
process.exit(rows.every(row => row.kept) ? 0 : 1)

function pageOf(): string {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
    version: string
  }
  const [{ model = 'unknown' } = {}] = cpus()
  const kernel = release().split('.').slice(0, 2).join('.')
  const machine = `${cpus().length} cores (${model.trim()}, ${arch()}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${kernel}, Node ${process.version}`
  const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
  const parts = [...new Set(rows.map(row => row.part))].map(part => {
    const own = rows.filter(row => row.part === part)
    const lines = own.map(
      ({ what, wanted, found, kept, seconds }) =>
        `| ${cell(what)} | ${cell(wanted)} | ${cell(found)} | ${kept ? 'yes' : '**no**'} | ${seconds.toFixed(0)} s |`,
    )
    return `## ${part}\n\n| what | promised | found | kept | took |\n|---|---|---|---|---|\n${lines.join('\n')}\n`
  })
  return `# Proof

Written by \`npm run prove${asked}\`: every figure was measured by that run.

- ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, version ${version}, ${minutes.toFixed(1)} minutes
- ${machine}; load average ${busy.toFixed(1)} when it began
- seed \`${seed}\`: \`--seed ${seed}\` asks the same again
- ${rows.filter(row => row.kept).length} of ${rows.length} promises kept

How it is done: \`test/prove/\`. A slice of it is in every \`npm test\`. What took how long is told of all that was proven together.

- **Crashes**: processes are killed at random and at named places, disks fail or lose what was not yet safe; then what is there is held against what was acknowledged.
- **Consistency**: every request and answer is recorded, and one order of all writes must explain them.
- **Seeded bugs**: each is put into the sources on their way into memory, one at a time, and must be found by the checks above.
- **Escalation**: people with small rights try to get more, step by step, against a server in one process. After each step a model that shares no code with the server says who may reach what.
- **Malice**: requests, texts and programs made by chance from right ones. *Reached new code*: so many of them led where none before had been.
- **Cost**: every field of every kind at its limit and beyond, in every way to write it, and bodies that are costly by their shape. CPU time of the main thread is measured, in all and between two turns of the event loop.
- **Load**: measured with nothing else of the proof running. A machine that has other work to do shows here first.

${parts.join('\n')}`
}
