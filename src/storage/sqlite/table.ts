// The database file: its tables and all statements that write to it. Runs in the storage thread, so that disk waits block nothing else.
//
// The log is the only table of objects: one row per key and commit, in order. The newest row of a key is its state. A row names the
// revision of its key that it supersedes, so compaction finds rows to delete without an index.

import { DatabaseSync } from 'node:sqlite'
import { sumOf } from '../checksum.ts'
import { hadNoEffect } from './errors.ts'
import { bringUpToDate, type LogRow, sumOfRow, writeMeta } from './schema.ts'

/** `text`: the number of bytes of this row in the batch's slab; 0 for a deletion, which has the text of its predecessor. */
export type Row = {
  readonly revision: number
  readonly slot: number
  readonly bucket: string
  readonly namespace: string
  readonly name: string
  readonly previous: number
  readonly gap: number
  readonly text: number
}
export type RowBatch = { readonly rows: readonly Row[]; readonly slab: Uint8Array; readonly time: number }
/** A replacement text for the row of a key at a revision. */
export type Text = Pick<Row, 'revision' | 'bucket' | 'namespace' | 'name' | 'gap'> & { readonly text: Uint8Array }
/** A time of `undefined` removes the id. */
export type Times = readonly (readonly [id: string, time: number | undefined])[]

/** Thrown when a COMMIT failed but may have taken effect. The table is closed; reopen it to find out. */
export class UnclearError extends Error {}

export type Table = {
  /** The newest revision in the log, and the newest one whose history is gone. */
  readonly revision: number
  readonly floor: number
  append(batch: RowBatch): void
  saveTimes(times: Times): void
  /** Replaces the texts of existing rows. Missing rows are skipped. */
  replace(texts: readonly Text[]): void
  /** Writes something tiny to test the disk. */
  probe(): void
  /** Deletes rows that the next thousand revisions up to `floor` superseded. */
  compact(floor: number): void
  /** Copies a large write-ahead log into the database. Runs after a reply, so that no reply waits for it. */
  tidy(): void
  close(): void
}

/** The id of a row contains its revision and its slot in the commit. So the table is in log order, without an index. */
export const SLOTS = 1024

const STEP = 1000
const TIDY_PAGES = 4000

export type TableOptions = {
  readonly file: string
  /** Syncs everything in the file to disk before reading it, after a COMMIT with an unknown outcome. */
  readonly settle?: boolean
  readonly open?: (file: string) => DatabaseSync
}

export function openTable(options: TableOptions): Table {
  const { file, settle = false, open = name => new DatabaseSync(name, { timeout: 5000 }) } = options
  const db = open(file)
  try {
    prepare(db, settle)
  } catch (error) {
    db.close()
    throw error
  }
  const insert = db.prepare('INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const changed = db.prepare('SELECT id, bucket, previous, gap FROM log WHERE id >= ? AND id < ?')
  const deleteRow = db.prepare('DELETE FROM log WHERE id = ?')
  const deleteOld = db.prepare('DELETE FROM log WHERE id >= ? AND id < ? AND bucket = ?')
  const findRow = db.prepare('SELECT * FROM log WHERE id >= ? AND id < ? AND bucket = ? AND namespace = ? AND name = ?')
  const putText = db.prepare('UPDATE log SET text = ?, gap = ?, sum = ? WHERE id = ?')
  const saveTime = db.prepare('INSERT OR REPLACE INTO times VALUES (?, ?, ?)')
  const forgetTime = db.prepare('DELETE FROM times WHERE id = ?')
  let floor = readNumber(db, "SELECT value FROM meta WHERE name = 'floor'")
  let pages = 0

  function transaction(work: () => void): void {
    db.exec('BEGIN IMMEDIATE')
    try {
      work()
    } catch (error) {
      rollback(db)
      throw error
    }
    try {
      db.exec('COMMIT')
    } catch (error) {
      rollback(db)
      if (hadNoEffect(error)) throw error
      db.close()
      throw new UnclearError('a COMMIT failed', { cause: error })
    }
  }

  return {
    revision: Math.max(floor, Math.floor(readNumber(db, 'SELECT coalesce(max(id), 0) FROM log') / SLOTS)),
    get floor() {
      return floor
    },
    append({ rows, slab, time }) {
      transaction(() => {
        let at = 0
        for (const row of rows) {
          const text = row.text === 0 ? null : slab.subarray(at, at + row.text)
          at += row.text
          const id = row.revision * SLOTS + row.slot
          const { bucket, namespace, name, previous, gap } = row
          const sum = sumOfRow({ id, bucket, namespace, name, previous, gap, time, text })
          insert.run(id, bucket, namespace, name, previous, gap, time, text, sum)
        }
      })
      pages += 2 + rows.length + (slab.length >> 12)
    },
    saveTimes: times =>
      transaction(() => {
        for (const [id, time] of times) {
          if (time === undefined) forgetTime.run(id)
          else saveTime.run(id, time, sumOf([id, time]))
        }
      }),
    replace(texts) {
      transaction(() => {
        for (const { revision, bucket, namespace, name, gap, text } of texts) {
          const row = findRow.get(revision * SLOTS, (revision + 1) * SLOTS, bucket, namespace, name)
          // A damaged record keeps its checksum, so that verify finds it: a new checksum would hide the damage.
          if (row?.['sum'] !== (row && sumOfRow(row as unknown as LogRow))) continue
          if (row) putText.run(text, gap, sumOfRow({ ...(row as unknown as LogRow), gap, text }), row['id'] as number)
        }
      })
      pages += texts.reduce((sum, { text }) => sum + 2 + (text.length >> 12), 2)
    },
    probe: () => transaction(() => writeMeta(db, 'probe', Date.now())),
    compact(target) {
      const to = Math.min(target, floor + STEP)
      transaction(() => {
        for (const row of changed.all((floor + 1) * SLOTS, (to + 1) * SLOTS)) {
          const { id, bucket, previous, gap } = row as { id: number; bucket: string; previous: number; gap: number }
          if (previous > 0) deleteOld.run(previous * SLOTS, (previous + 1) * SLOTS, bucket)
          if (gap === 0) deleteRow.run(id)
        }
        writeMeta(db, 'floor', to)
      })
      floor = to
      pages += STEP
    },
    tidy() {
      if (pages < TIDY_PAGES) return
      pages = 0
      db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    },
    close: () => db.close(),
  }
}

function prepare(db: DatabaseSync, settle: boolean): void {
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0')
  db.exec(`PRAGMA journal_size_limit = ${64 * 2 ** 20}`)
  bringUpToDate(db)
  if (settle && readNumber(db, 'PRAGMA wal_checkpoint(TRUNCATE)') !== 0) throw new Error('the database is busy')
}

/** Some errors have rolled back already. If the rollback itself fails, no COMMIT can write anything either. */
function rollback(db: DatabaseSync): void {
  if (db.isTransaction) db.exec('ROLLBACK')
}

function readNumber(db: DatabaseSync, sql: string): number {
  const statement = db.prepare(sql)
  statement.setReturnArrays(true)
  const row: unknown = statement.get()
  return Array.isArray(row) ? Number(row[0]) : 0
}
