// Copies the state of a database file: reads it as records at one revision, and creates a file from records.
//
// A revision is never used twice. Clients of a restored store may have seen later revisions than the backup has, so it continues
// far above them. Its history begins there, and older watches get 410.

import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { sumOf } from '../checksum.ts'
import { type Files, type Records, revisionOf, type StoredRecord, type Summary, summarized } from '../records.ts'
import { DamagedError, unusableError } from './errors.ts'
import { bringUpToDate, FILE_VERSION, type LogRow, readMeta, sumOfRow, writeMeta } from './schema.ts'

export type ReadOptions = { readonly file: string; readonly files?: Files; readonly now: () => number }

export function* readDatabase({ file, files = {}, now }: ReadOptions): Generator<StoredRecord> {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  try {
    db.exec('BEGIN') // a consistent snapshot during concurrent writes
    const version = readMeta(db, 'version')
    if (version !== FILE_VERSION || readMeta(db, 'migrated') !== undefined)
      throw new Error(`the database has format ${version}: start the server once to upgrade it`)
    const top = db.prepare('SELECT coalesce(max(id), 0) AS id FROM log').get() as { id: number }
    yield [['begin', Math.max(readMeta(db, 'floor') ?? 0, revisionOf(top.id)), now()]]
    for (const [name, bytes] of Object.entries(files)) yield [['file', name], bytes]
    let objects = 0
    for (const found of db.prepare(NEWEST).iterate()) {
      const row = found as unknown as LogRow & { readonly sum: number }
      const { id, bucket, namespace, name, previous, gap, time, text } = row
      if (row.sum !== sumOfRow(row)) throw damaged(`${bucket} ${namespace}/${name}`)
      objects++
      yield [['object', id, bucket, namespace, name, previous, gap, time], text ?? new Uint8Array()]
    }
    for (const found of db.prepare('SELECT * FROM times').all()) {
      const { id, time, sum } = found as { id: string; time: number; sum: number }
      if (sum !== sumOf([id, time])) throw damaged(`the last use of ${id}`)
      yield [['time', id, time]]
    }
    yield [['end', objects]]
  } catch (error) {
    throw unusableError(file, error)
  } finally {
    db.close()
  }
}

const damaged = (what: string) => new DamagedError(`${what} has a wrong checksum`)

const NEWEST = `
  SELECT * FROM log WHERE gap > 0 AND id IN (SELECT max(id) FROM log GROUP BY bucket, namespace, name) ORDER BY id`

/** The name of a database that a restore or migration has not completed. A server does not start beside it. */
export const incompleteFile = (file: string): string => `${file}.incomplete`

export type CreateOptions = {
  /** A file that does not exist yet. After a failure it is incomplete. */
  readonly file: string
  readonly records: Records
  /** The distance between the revision of the records and the first one of the new store. */
  readonly skip: number
}

export async function createDatabase({ file, records, skip }: CreateOptions): Promise<Summary> {
  closeSync(openSync(file, 'wx', 0o600))
  const db = new DatabaseSync(file)
  try {
    // Not the write-ahead log that a server uses: closing would copy it into the file without reporting a failure.
    db.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL')
    bringUpToDate(db)
    db.exec('BEGIN IMMEDIATE')
    const found = await fill(db, records)
    writeMeta(db, 'floor', found.revision + skip)
    db.exec('COMMIT')
    return found
  } finally {
    db.close()
  }
}

async function fill(db: DatabaseSync, records: Records): Promise<Summary> {
  const insert = db.prepare('INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const saveTime = db.prepare('INSERT INTO times VALUES (?, ?, ?)')
  let summary: Summary | undefined
  const whole = summarized(records, found => {
    summary = found
  })
  for await (const [fields, bytes = new Uint8Array()] of whole) {
    if (fields[0] === 'time') saveTime.run(fields[1], fields[2], sumOf([fields[1], fields[2]]))
    if (fields[0] !== 'object') continue
    const [, id, bucket, namespace, name, previous, gap, time] = fields
    const sum = sumOfRow({ id, bucket, namespace, name, previous, gap, time, text: bytes })
    insert.run(id, bucket, namespace, name, previous, gap, time, bytes, sum)
  }
  return summary!
}
