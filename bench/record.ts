// The record of the bench: the newest value of every figure, with date and machine, and the table for docs/BENCH.md.

import { type Circumstances, toldMachine } from './machine-info.ts'
import { type Figure, rounded, told, toldWanted } from './measurement.ts'

export type Entry = Figure & Circumstances
export type BenchRecord = { readonly figures: readonly Entry[] }

/** A figure keeps its position, so that a diff shows new measurements. Other figures stay unchanged. */
export function merge(record: BenchRecord, figures: readonly Figure[], circumstances: Circumstances): BenchRecord {
  const all = new Map(record.figures.map(entry => [entry.name, entry]))
  for (const figure of figures) {
    const before = all.get(figure.name)
    if (before && before.date > circumstances.date) continue
    all.set(figure.name, entryOf(figure, circumstances))
  }
  return { figures: [...all.values()] }
}

function entryOf(figure: Figure, circumstances: Circumstances): Entry {
  const { name, unit, bare, curve, wanted, direction, note } = figure
  if (!Number.isFinite(figure.value)) throw new Error(`${name} is ${figure.value}: that was not measured`)
  return {
    name,
    value: rounded(figure.value),
    unit,
    ...(bare ? { bare: { name: bare.name, value: rounded(bare.value) } } : {}),
    ...(curve ? { curve: { ...curve, points: curve.points.map(one => ({ ...one, value: rounded(one.value) })) } } : {}),
    ...(wanted === undefined ? {} : { wanted }),
    direction,
    ...(note ? { note } : {}),
    ...circumstances,
  }
}

/** The file name of a chart: `scale: cold start` is `scale-cold-start.svg`. */
export const chartName = (name: string) =>
  `${name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')}.svg`

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
const quiet = { true: 'yes', false: 'no', undefined: 'not noted' }

export function tableOf({ figures }: BenchRecord): string {
  const rows = figures.map(entry => {
    const { name, date, machine, value, bare, note } = entry
    const beside = bare && bare.value !== 1 ? `${bare.name} ${told(bare.value, entry)}` : ''
    const result = [told(value, entry), beside, note].filter(Boolean).join('; ')
    const chart = `![${name}](bench/${chartName(name)})`
    const cells = [date, toldMachine(machine), quiet[`${machine.quiet}`], name, result, toldWanted(entry), chart]
    return `| ${cells.map(cell).join(' | ')} |`
  })
  const head = ['date', 'machine', 'quiet', 'row', 'result', 'wanted', 'chart']
  return [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...rows].join('\n')
}

export const marks = { begin: '<!-- bench record: begin -->', end: '<!-- bench record: end -->' }

/** The page with the table between its markers. */
export function withTable(page: string, record: BenchRecord): string {
  const [begin, end] = [page.indexOf(marks.begin), page.indexOf(marks.end)]
  if (begin === -1 || end < begin) throw new Error(`docs/BENCH.md needs ${marks.begin} and, after it, ${marks.end}`)
  return `${page.slice(0, begin + marks.begin.length)}\n${tableOf(record)}\n${page.slice(end)}`
}
