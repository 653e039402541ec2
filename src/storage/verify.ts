// Checks every record of a database file, and reports which ones are damaged.

import { DatabaseSync } from 'node:sqlite'
import { isObject } from '../api/object.ts'
import { sumOf } from './checksum.ts'
import { describeError, isNotDatabase, unavailableReason } from './sqlite/errors.ts'
import { FILE_VERSION, type LogRow, sumOfRow } from './sqlite/schema.ts'
import { SLOTS } from './sqlite/table.ts'

export type Verified = {
  readonly records: number
  readonly revision: number
  /** Each names a position and its problem. Empty: the file is intact. */
  readonly damages: readonly string[]
  /** Set if the file has another format and was not fully checked. */
  readonly otherFormat?: string
}

type Summed<T> = T & { readonly sum: number }
/** The file could not be checked. The message says why and what to do. */
export class UnverifiedError extends Error {}

export const MAX_DAMAGES = 1000

/** Throws UnverifiedError. */
export function verifyFile(file: string): Verified {
  const damages: string[] = []
  const found = { records: 0, revision: 0 }
  const report = (damage: string) => {
    if (damages.length < MAX_DAMAGES) damages.push(damage)
  }
  /** Not a database: every further check would fail the same way. */
  let isForeign = false
  /** A record that the engine cannot read is damaged, too. */
  const tried = (where: string, look: () => void) => {
    try {
      look()
    } catch (error) {
      const unavailable = unavailableReason(error)
      if (unavailable !== undefined) throw new UnverifiedError(unavailable, { cause: error })
      report(`${where} cannot be read: ${describeError(error)}`)
      isForeign ||= isNotDatabase(error)
    }
  }
  let db: DatabaseSync | undefined
  tried('the file', () => {
    db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  })
  const open = db
  if (open === undefined) return { ...found, damages }
  try {
    tried('the file', () => open.exec('BEGIN'))
    tried('the file', () => checkStructure(open, report))
    if (isForeign) return { ...found, damages }
    // The checks below would report false problems for another format.
    const format = formatOf(open)
    if (format !== undefined) return { ...found, damages, otherFormat: format }
    tried('the table meta', () => checkMeta(open, report))
    tried('the table times', () => checkTimes(open, report))
    tried('the table log', () => {
      const { floor } = open.prepare("SELECT value AS floor FROM meta WHERE name = 'floor'").get() as { floor: number }
      Object.assign(found, checkLog(open, floor, report))
    })
  } finally {
    open.close()
  }
  return { ...found, damages }
}

type Report = (damage: string) => void

/** As text; undefined: the current format, or unknown. A version with a wrong checksum is damage, not another format. */
function formatOf(db: DatabaseSync): string | undefined {
  try {
    const row = db.prepare("SELECT * FROM meta WHERE name = 'version'").get() as Partial<Summed<{ value: number }>>
    const isBegun = db.prepare("SELECT value FROM meta WHERE name = 'migrated'").get() !== undefined
    const { value = 0, sum } = row
    if (isBegun) return `format ${value}, migration incomplete: start the server to continue it`
    if (value === FILE_VERSION || (sum !== undefined && sum !== sumOf(['version', value]))) return undefined
    if (value > FILE_VERSION) return `format ${value}: use a newer version of platform`
    return `format ${value}, which has no checksums: start the server once to upgrade it`
  } catch {
    return undefined
  }
}

/** Pages, cells and the order within tables and indexes, as checked by SQLite itself. */
function checkStructure(db: DatabaseSync, report: Report): void {
  for (const row of db.prepare('PRAGMA integrity_check(100)').all()) {
    const result = String(row['integrity_check'])
    if (result !== 'ok') report(`invalid file structure: ${result}`)
  }
}

function checkMeta(db: DatabaseSync, report: Report): void {
  const rows = db.prepare('SELECT * FROM meta').all() as unknown as Summed<{ name: string; value: number }>[]
  for (const name of ['version', 'floor', 'probe'])
    if (!rows.some(row => row.name === name)) report(`meta ${name} is missing`)
  for (const { name, value, sum } of rows) if (sum !== sumOf([name, value])) report(`meta ${name}: wrong checksum`)
}

function checkTimes(db: DatabaseSync, report: Report): void {
  for (const row of db.prepare('SELECT * FROM times').iterate()) {
    const { id, time, sum } = row as unknown as Summed<{ id: string; time: number }>
    if (sum !== sumOf([id, time])) report(`times ${JSON.stringify(id)}: wrong checksum`)
  }
}

function checkLog(db: DatabaseSync, floor: number, report: Report): { records: number; revision: number } {
  const newest = new Map<string, number>()
  let records = 0
  let revision = floor
  for (const found of db.prepare('SELECT * FROM log ORDER BY id').iterate()) {
    const row = found as unknown as Summed<LogRow>
    const at = Math.floor(row.id / SLOTS)
    const where = describeRow(row)
    records++
    const problem = row.sum === sumOfRow(row) ? problemOf(row, at) : 'wrong checksum'
    if (problem !== undefined) report(`${where}: ${problem}`)
    // History has no gaps: every revision above the oldest kept one was a commit.
    if (at > floor && at !== revision && at !== revision + 1) report(`${where}: the revision before it is missing`)
    const key = JSON.stringify([row.bucket, row.namespace, row.name])
    if (at > floor && row.previous !== (newest.get(key) ?? 0))
      report(`${where}: does not follow revision ${row.previous}`)
    if (row.gap === 0) newest.delete(key)
    else newest.set(key, at)
    if (at > revision) revision = at
  }
  return { records, revision }
}

export const describeRow = ({ id, bucket, namespace, name }: Pick<LogRow, 'id' | 'bucket' | 'namespace' | 'name'>) =>
  `record ${id} (revision ${Math.floor(id / SLOTS)}, ${bucket} ${namespace ? `${namespace}/` : ''}${name})`

type RowContent = Pick<LogRow, 'gap' | 'text' | 'namespace' | 'name'>

/** The problem of a text that is not the object of its key. */
export function problemOf({ gap, text, namespace, name }: RowContent, revision: number): string | undefined {
  if (gap === 0) return text === null ? undefined : 'a deletion with data'
  if (text === null) return 'the data is missing'
  try {
    const whole: unknown = JSON.parse(Buffer.from(text).toString())
    const metadata = isObject(whole) && isObject(whole.metadata) ? whole.metadata : {}
    if (metadata.name !== name || (metadata.namespace ?? '') !== namespace) return 'the data belongs to another object'
    return metadata.resourceVersion === String(revision) ? undefined : 'the data belongs to another revision'
  } catch {
    return 'the data is not JSON'
  }
}
