// Backup and restore: writes the store at one revision as an encrypted stream, and creates a database file from it.
//
// A revision is never used twice. Clients may have seen later revisions than the backup has, so a restored store continues far
// above them. Its history begins there, and older watches get 410.

import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { sumOf } from './checksum.ts'
import { openStream, sealStream } from './encrypted-stream.ts'
import type { RingKey } from './key-ring.ts'
import { DamagedError, unusableError } from './sqlite/errors.ts'
import { bringUpToDate, FILE_VERSION, type LogRow, readMeta, sumOfRow, writeMeta } from './sqlite/schema.ts'
import { SLOTS } from './sqlite/table.ts'

/** Files in the backup, by name, such as the CA that clients trust. */
export type Files = { readonly [name: string]: Uint8Array }

export type Fields =
  | readonly ['begin', revision: number, time: number]
  | readonly ['file', name: string]
  | readonly [
      'object',
      id: number,
      bucket: string,
      namespace: string,
      name: string,
      previous: number,
      gap: number,
      time: number,
    ]
  | readonly ['time', id: string, time: number]
  | readonly ['end', objects: number]

export type BackupOptions = {
  readonly file: string
  readonly files: Files
  readonly key: RingKey
  readonly random: (size: number) => Uint8Array
  readonly now: () => number
  /** Called with the contents of the header. */
  readonly done: (summary: Summary) => void
}
export type Summary = { readonly revision: number; readonly objects: number }

const PIECE = 256 * 1024

export const writeBackup = ({ key, random, ...from }: BackupOptions): Generator<Buffer> =>
  sealStream(pieces(records(from)), key, random)

function* records({
  file,
  files,
  now,
  done,
}: Omit<BackupOptions, 'key' | 'random'>): Generator<readonly [Fields, Uint8Array?]> {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  try {
    db.exec('BEGIN') // a consistent snapshot during concurrent writes
    const version = readMeta(db, 'version')
    if (version !== FILE_VERSION || readMeta(db, 'migrated') !== undefined)
      throw new Error(`the database has format ${version}: start the server once to upgrade it`)
    const top = db.prepare('SELECT coalesce(max(id), 0) AS id FROM log').get() as { id: number }
    const revision = Math.max(readMeta(db, 'floor') ?? 0, Math.floor(top.id / SLOTS))
    yield [['begin', revision, now()]]
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
    done({ revision, objects })
  } catch (error) {
    throw unusableError(file, error)
  } finally {
    db.close()
  }
}

const damaged = (what: string) => new DamagedError(`${what} has a wrong checksum`)

const NEWEST = `
  SELECT * FROM log WHERE gap > 0 AND id IN (SELECT max(id) FROM log GROUP BY bucket, namespace, name) ORDER BY id`

/** A record: the size of its fields, the size of its bytes, then both. A piece has many records. */
function* pieces(all: Iterable<readonly [Fields, Uint8Array?]>): Generator<Buffer> {
  let parts: Uint8Array[] = []
  let size = 0
  for (const [fields, bytes = new Uint8Array()] of all) {
    const json = Buffer.from(JSON.stringify(fields))
    const sizes = Buffer.alloc(8)
    sizes.writeUInt32BE(json.length, 0)
    sizes.writeUInt32BE(bytes.length, 4)
    parts.push(sizes, json, bytes)
    size += 8 + json.length + bytes.length
    if (size < PIECE) continue
    yield Buffer.concat(parts)
    parts = []
    size = 0
  }
  if (size > 0) yield Buffer.concat(parts)
}

export type RestoreOptions = {
  /** A file that does not exist yet. After a failure it is incomplete. */
  readonly file: string
  readonly source: AsyncIterable<Uint8Array>
  readonly keys: readonly RingKey[]
  /** The distance between the backup's revision and the first one of the restored store. */
  readonly skip: number
}
export type Restored = Summary & { readonly files: Files; readonly time: number }

export async function readBackup({ file, source, keys, skip }: RestoreOptions): Promise<Restored> {
  closeSync(openSync(file, 'wx', 0o600))
  const db = new DatabaseSync(file)
  try {
    // Not the write-ahead log that a server uses: closing would copy it into the file without reporting a failure.
    db.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL')
    bringUpToDate(db)
    db.exec('BEGIN IMMEDIATE')
    const found = await fill(db, openStream(source, keys))
    writeMeta(db, 'floor', found.revision + skip)
    db.exec('COMMIT')
    return found
  } finally {
    db.close()
  }
}

async function fill(db: DatabaseSync, opened: AsyncIterable<Buffer>): Promise<Restored> {
  const insert = db.prepare('INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const saveTime = db.prepare('INSERT INTO times VALUES (?, ?, ?)')
  const files: { [name: string]: Uint8Array } = Object.create(null)
  let begin: { revision: number; time: number } | undefined
  let objects = 0
  let isWhole = false
  for await (const piece of opened)
    for (const [fields, bytes] of recordsIn(piece)) {
      if (fields[0] === 'begin') begin = { revision: fields[1], time: fields[2] }
      else if (fields[0] === 'file') files[fields[1]] = bytes
      else if (fields[0] === 'time') saveTime.run(fields[1], fields[2], sumOf([fields[1], fields[2]]))
      else if (fields[0] === 'end') isWhole = fields[1] === objects
      else {
        const [, id, bucket, namespace, name, previous, gap, time] = fields
        const sum = sumOfRow({ id, bucket, namespace, name, previous, gap, time, text: bytes })
        insert.run(id, bucket, namespace, name, previous, gap, time, bytes, sum)
        objects++
      }
    }
  if (!begin || !isWhole) throw new Error('the backup is incomplete')
  return { ...begin, objects, files }
}

/** The records of a decrypted piece. Throws if it does not have the form that `pieces` writes. */
export function* recordsIn(piece: Buffer): Generator<readonly [Fields, Buffer]> {
  for (let at = 0; at < piece.length; ) {
    const [json, bytes] = [piece.readUInt32BE(at), piece.readUInt32BE(at + 4)]
    const start = at + 8 + json
    if (start + bytes > piece.length) throw new Error('the record is longer than its chunk')
    yield [fieldsIn(piece.toString('utf8', at + 8, start)), piece.subarray(start, start + bytes)]
    at = start + bytes
  }
}

/** Hides the parser's own message, which would quote the decrypted text. */
function fieldsIn(json: string): Fields {
  try {
    return JSON.parse(json) as Fields
  } catch {
    throw new Error('the fields of the record are not JSON')
  }
}
