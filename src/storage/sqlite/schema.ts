// The format of the database file, and the migrations from older formats.
//
// A migration is forward only and runs in steps, each a transaction. From the first step on, the file has the number of the new format,
// so that no older program writes to it, and the progress, so that an interrupted migration continues.

import type { DatabaseSync } from 'node:sqlite'
import { sumOf } from '../checksum.ts'

export const FILE_VERSION = 2

export type LogRow = {
  readonly id: number
  readonly bucket: string
  readonly namespace: string
  readonly name: string
  readonly previous: number
  readonly gap: number
  readonly time: number
  readonly text: Uint8Array | null
}

export const sumOfRow = ({ id, bucket, namespace, name, previous, gap, time, text }: LogRow): number =>
  sumOf([id, bucket, namespace, name, previous, gap, time], text)

const SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
  CREATE TABLE log (
    id INTEGER PRIMARY KEY, bucket TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    previous INTEGER NOT NULL, gap INTEGER NOT NULL, time INTEGER NOT NULL, text BLOB, sum INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE times (id TEXT PRIMARY KEY, time INTEGER NOT NULL, sum INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;`

export type FormatOptions = {
  /** Called after every step of a migration. */
  readonly stepped?: (rows: number) => void
}

/** Creates the tables of an empty file, migrates an older one, and rejects a newer one. */
export function bringUpToDate(db: DatabaseSync, { stepped = () => {} }: FormatOptions = {}): void {
  const tables = db.prepare('SELECT count(*) AS count FROM sqlite_schema').get() as { count: number }
  if (tables.count === 0) inTransaction(db, () => makeTables(db))
  const version = readMeta(db, 'version') ?? 0
  if (version > FILE_VERSION)
    throw new Error(
      `the database has format ${version}, but this version of platform supports formats up to ${FILE_VERSION}: use a newer version`,
    )
  if (version < 2) inTransaction(db, () => beginSums(db))
  if (readMeta(db, 'migrated') !== undefined) addSums(db, stepped)
}

function makeTables(db: DatabaseSync): void {
  db.exec(SCHEMA)
  const put = db.prepare('INSERT INTO meta VALUES (?, ?, ?)')
  for (const [name, value] of [
    ['version', FILE_VERSION],
    ['floor', 1],
    ['probe', 0],
  ] as const)
    put.run(name, value, sumOf([name, value]))
}

/** Format 2: a checksum in every row. */
function beginSums(db: DatabaseSync): void {
  for (const table of ['log', 'meta', 'times'])
    db.exec(`ALTER TABLE ${table} ADD COLUMN sum INTEGER NOT NULL DEFAULT 0`)
  db.exec("INSERT INTO meta (name, value) VALUES ('migrated', 0)")
  writeMeta(db, 'version', 2)
}

const STEP = 1000

function addSums(db: DatabaseSync, stepped: (rows: number) => void): void {
  const next = db.prepare('SELECT * FROM log WHERE id > ? ORDER BY id LIMIT ?')
  const put = db.prepare('UPDATE log SET sum = ? WHERE id = ?')
  for (;;) {
    const rows = next.all(readMeta(db, 'migrated') ?? 0, STEP) as unknown as LogRow[]
    if (rows.length === 0) break
    inTransaction(db, () => {
      for (const row of rows) put.run(sumOfRow(row), row.id)
      writeMeta(db, 'migrated', rows.at(-1)?.id ?? 0)
    })
    stepped(rows.length)
  }
  inTransaction(db, () => {
    const times = db.prepare('SELECT id, time FROM times').all() as { id: string; time: number }[]
    const putTime = db.prepare('UPDATE times SET sum = ? WHERE id = ?')
    for (const { id, time } of times) putTime.run(sumOf([id, time]), id)
    db.exec("DELETE FROM meta WHERE name = 'migrated'")
    for (const { name, value } of db.prepare('SELECT name, value FROM meta').all() as { name: string; value: number }[])
      writeMeta(db, name, value)
  })
}

export function readMeta(db: DatabaseSync, name: string): number | undefined {
  const row = db.prepare('SELECT value FROM meta WHERE name = ?').get(name) as { value: number } | undefined
  return row?.value
}

export function writeMeta(db: DatabaseSync, name: string, value: number): void {
  db.prepare('UPDATE meta SET value = ?, sum = ? WHERE name = ?').run(value, sumOf([name, value]), name)
}

function inTransaction(db: DatabaseSync, work: () => void): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    work()
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
