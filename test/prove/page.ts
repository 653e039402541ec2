// The page docs/PROOF.md: one section for each part, with the run that measured it. A run of one part replaces its section.

import { arch, cpus, platform, release, totalmem } from 'node:os'

/** `wanted` and `found` as text; `kept`: whether the promise holds. */
export type Row = {
  readonly part: string
  readonly what: string
  readonly wanted: string
  readonly found: string
  readonly kept: boolean
  readonly seconds: number
}

export type Run = {
  readonly rows: readonly Row[]
  readonly date: Date
  readonly version: string
  readonly minutes: number
  /** The load average at the start. */
  readonly load: number
  readonly seed: string
  /** The flags after `npm run prove`. */
  readonly flags: string
}

const head = `# Proof

Results of \`npm run prove\`, which crashes, overloads and attacks a running server and compares the outcome with the documented promises. Each section states the run
that measured it. \`npm run prove -- --part NAME\` measures one section again.

The code is in \`test/prove/\`. A small part runs in every \`npm test\`. The time in a row is that of all rows measured together.
`

const parts: { readonly [part: string]: string } = {
  Consistency: 'records every request and response. One order of all writes must explain them.',
  Cost: 'stretches every field of every kind to its limit and beyond, and sends bodies that are costly by their shape. It measures the CPU time of the main thread.',
  Crashes:
    'kills processes at random and at named points, and makes disks fail or lose unsynced data. Then compares the stored data with the acknowledged writes.',
  Escalation:
    'users with few permissions try to gain more, step by step. After each step a model that shares no code with the server states who may reach what.',
  Load: 'runs alone. Other work on the machine affects these figures first.',
  Malice:
    'mutates valid requests, texts and programs at random. *Reached new code* is the number of inputs that covered new code.',
  Replicas:
    'three replicas on three etcd members, which are killed, paused, partitioned, compacted and defragmented, while clocks jump. One order of all writes must explain every response.',
  'Seeded bugs': 'patches one bug at a time into the loaded sources. The other parts must find it.',
  'Sign-in': 'a model of people, a provider and a clock that jumps. Nobody keeps access longer than promised.',
}

/** `before`: the page so far. */
export function pageOf(before: string, run: Run): string {
  const sections = new Map(sectionsOf(before))
  for (const part of new Set(run.rows.map(row => row.part))) sections.set(part, sectionOf(part, run))
  const sorted = [...sections].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const listed = sorted.map(([part]) => `- **${part}**: ${parts[part] ?? ''}\n`).join('')
  return `${head}\n${listed}\n${sorted.map(([, text]) => text.trimEnd()).join('\n\n')}\n`
}

/** Of a section without the line of its run, nobody knows the run. */
const sectionsOf = (page: string): [string, string][] =>
  page
    .split(/^(?=## )/m)
    .filter(text => /^## .+\n\n- \d{4}-/.test(text))
    .map(text => [/^## (.+)$/m.exec(text)?.[1] ?? '', text])

function sectionOf(part: string, { rows, date, version, minutes, load, seed, flags }: Run): string {
  const [{ model = 'unknown' } = {}] = cpus()
  const kernel = release().split('.').slice(0, 2).join('.')
  const machine = `${cpus().length} cores (${model.trim()}, ${arch()}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${kernel}, Node ${process.version}`
  const own = rows.filter(row => row.part === part)
  const lines = own.map(
    ({ what, wanted, found, kept, seconds }) =>
      `| ${cell(what)} | ${cell(wanted)} | ${cell(found)} | ${kept ? 'yes' : '**no**'} | ${seconds.toFixed(0)} s |`,
  )
  return `## ${part}

- ${date.toISOString().slice(0, 16).replace('T', ' ')} UTC, version ${version}, ${minutes.toFixed(1)} minutes, \`npm run prove${flags}\`
- ${machine}; load average ${load.toFixed(1)} at the start
- seed \`${seed}\`; ${own.filter(row => row.kept).length} of ${own.length} promises kept

| what | promised | found | kept | took |
|---|---|---|---|---|
${lines.join('\n')}
`
}

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
