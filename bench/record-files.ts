// Reads and writes the record: docs/bench/results.json, a chart per figure, and the table in docs/BENCH.md. run.ts calls it.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chartOf } from './chart.ts'
import { type BenchRecord, chartName, withTable } from './record.ts'

const docs = join(import.meta.dirname, '../docs')

export function readRecord(directory = docs): BenchRecord {
  const file = join(directory, 'bench/results.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as BenchRecord) : { figures: [] }
}

/** All files generated from the record, by path below `directory`. */
export function pagesOf(record: BenchRecord, directory = docs): Map<string, string> {
  const page = readFileSync(join(directory, 'BENCH.md'), 'utf8')
  return new Map([
    ['bench/results.json', `${JSON.stringify(record, null, 2)}\n`],
    ['BENCH.md', withTable(page, record)],
    ...record.figures.map(entry => [`bench/${chartName(entry.name)}`, chartOf(entry)] as const),
  ])
}

/** Deletes charts of figures that are no longer in the record. */
export function writeRecord(record: BenchRecord, directory = docs): void {
  const pages = pagesOf(record, directory)
  mkdirSync(join(directory, 'bench'), { recursive: true })
  for (const name of readdirSync(join(directory, 'bench')))
    if (name.endsWith('.svg') && !pages.has(`bench/${name}`)) rmSync(join(directory, 'bench', name))
  for (const [path, text] of pages) writeFileSync(join(directory, path), text)
}
