// The bench's record: the newest of every figure, and a page and charts that follow from it.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { lookAtMachine } from '../../bench/machine-info.ts'
import type { Figure } from '../../bench/measurement.ts'
import { type BenchRecord, chartName, marks, merge, tableOf, withTable } from '../../bench/record.ts'
import { pagesOf, readRecord, writeRecord } from '../../bench/record-files.ts'
import { exec } from '../support/exec.ts'

const figure = (name: string, value: number, more: Partial<Figure> = {}): Figure => ({
  name,
  value,
  unit: 'ms',
  direction: 'at-most',
  ...more,
})
const on = (date: string, before: number) => ({
  date,
  machine: { cores: 2, arch: 'arm64', node: '24.0.0', load: { before, after: 3 }, quiet: before <= 1 },
})
const first = merge({ figures: [] }, [figure('one', 1), figure('two', 2), figure('three', 3)], on('2026-01-01', 0.2))

test('a part that is measured alone replaces its own figures and keeps the others, each with its own date', () => {
  const second = merge(first, [figure('two', 20), figure('four', 4)], on('2026-02-02', 5))
  assert.deepEqual(
    second.figures.map(({ name, value, date, machine }) => [name, value, date, machine.quiet]),
    [
      ['one', 1, '2026-01-01', true],
      ['two', 20, '2026-02-02', false],
      ['three', 3, '2026-01-01', true],
      ['four', 4, '2026-02-02', false],
    ],
  )
})

test('an older figure does not replace a newer one, and only numbers are recorded', () => {
  assert.deepEqual(merge(first, [figure('one', 9)], on('2025-12-31', 0)), first)
  assert.throws(() => merge(first, [figure('one', Number.NaN)], on('2026-03-03', 0)), /one is NaN/)
})

test('the table follows from the record: result, baseline, target with its direction, machine, load', () => {
  const bare = { name: 'bare Node', value: 43.219 }
  const record = merge(
    { figures: [] },
    [
      figure('cli: a|b', 63.119, { bare, wanted: 150, note: 'best 61' }),
      figure('events', 59_900, { unit: 'events/s' }),
    ],
    on('2026-01-01', 0.2),
  )
  assert.deepEqual(tableOf(record).split('\n').slice(2), [
    '| 2026-01-01 | 2 cores, arm64, Node 24.0.0, load average 0.2 before and 3 after | yes | cli: a\\|b | 63.12 ms; bare Node 43.22 ms; best 61 | ≤ 150 ms | ![cli: a\\|b](bench/cli-a-b.svg) |',
    '| 2026-01-01 | 2 cores, arm64, Node 24.0.0, load average 0.2 before and 3 after | yes | events | 59,900 events/s | – | ![events](bench/events.svg) |',
  ])
})

test('only the part between the marks of the page changes, and a page without them is rejected', () => {
  const page = `before\n${marks.begin}\nold\n${marks.end}\nafter\n`
  const next = withTable(page, first)
  assert.ok(next.startsWith(`before\n${marks.begin}\n| date |`) && next.endsWith(`|\n${marks.end}\nafter\n`))
  assert.equal(withTable(next, first), next)
  assert.throws(() => withTable('nothing', first), /needs <!-- bench record: begin -->/)
})

test('writing the record draws a chart for each figure and removes charts of removed figures', () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-bench-record-'))
  try {
    writeFileSync(join(directory, 'BENCH.md'), `${marks.begin}\n${marks.end}\n`)
    writeRecord(first, directory)
    const { figures } = readRecord(directory)
    assert.deepEqual(figures, first.figures)
    writeRecord({ figures: figures.slice(1) }, directory)
    assert.deepEqual(readdirSync(join(directory, 'bench')).toSorted(), ['results.json', 'three.svg', 'two.svg'])
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('the page and the charts in docs/ are those of the record in docs/', () => {
  const docs = join(import.meta.dirname, '../../docs')
  const record: BenchRecord = readRecord()
  assert.ok(record.figures.length > 30)
  const names = record.figures.map(({ name }) => chartName(name))
  assert.equal(new Set(names).size, names.length, 'two figures would share a chart')
  assert.deepEqual(
    readdirSync(join(docs, 'bench')).filter(name => name.endsWith('.svg')),
    names.toSorted(),
  )
  for (const [path, text] of pagesOf(record))
    assert.equal(readFileSync(join(docs, path), 'utf8'), text, `docs/${path}: run npm run bench -- --draw`)
})

test('the machine is described by its hardware and load and by settings of the bench, never by a name', () => {
  const { date, machine } = lookAtMachine().done()
  assert.match(date, /^\d{4}-\d\d-\d\d$/)
  assert.deepEqual(
    Object.keys(machine).filter(key => key !== 'noted'),
    ['cores', 'arch', 'node', 'load', 'quiet'],
  )
  assert.equal(machine.quiet, (machine.load?.before ?? 9) <= 1)
})

test('an unknown part is rejected with the list of parts, and nothing is measured', async () => {
  const run = join(import.meta.dirname, '../../bench/run.ts')
  const { code, stdout, stderr } = await exec(process.execPath, [run, 'nonsense'])
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /nothing is called nonsense; there are get one, page of 500, .*watch.*cli/)
})
