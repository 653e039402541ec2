// `npm run prove`: tests the documented promises against a running server, prints a table and writes it to docs/PROOF.md.
// `-- --long` takes hours, `-- --share 0.1` a tenth of the time; `-- --seed S` repeats a run; `-- --only WORD` runs the proofs with that word in their name, and writes no page.

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
/** The load of the machine at the start. Figures of a busy machine mean little. */
const [busy = 0] = loadavg()
console.log(`seed ${seed}`)
// The loads first, one at a time, because they measure speed.
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

Results of \`npm run prove${asked}\`, which crashes, overloads and attacks a running server and compares the outcome with the documented promises. One run
measured every figure on this page.

- ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, version ${version}, ${minutes.toFixed(1)} minutes
- ${machine}; load average ${busy.toFixed(1)} at the start
- seed \`${seed}\`: \`--seed ${seed}\` repeats the run
- ${rows.filter(row => row.kept).length} of ${rows.length} promises kept

The code is in \`test/prove/\`. A small part runs in every \`npm test\`. The time in a row is that of all rows measured together.

- **Crashes**: kills processes at random and at named points, and makes disks fail or lose unsynced data. Then compares the stored data with the acknowledged writes.
- **Consistency**: records every request and response. One order of all writes must explain them.
- **Seeded bugs**: patches one bug at a time into the loaded sources. The checks above must find it.
- **Escalation**: users with few permissions try to gain more, step by step. After each step a model that shares no code with the server states who may reach what.
- **Malice**: mutates valid requests, texts and programs at random. *Reached new code* is the number of inputs that covered new code.
- **Cost**: stretches every field of every kind to its limit and beyond, and sends bodies that are costly by their shape. It measures the CPU time of the main thread.
- **Load**: runs alone. Other work on the machine affects these figures first.

${parts.join('\n')}`
}
