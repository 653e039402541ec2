// Loads a database file into the watch cache at start: the newest state, and the history that watches resume from.

import { Buffer } from 'node:buffer'
import { DatabaseSync } from 'node:sqlite'
import { withRevision } from '../entry.ts'
import { labelsOf } from '../labels.ts'
import type { Key } from '../store.ts'
import type { WatchCache } from '../watch-cache.ts'
import { DamagedError } from './errors.ts'
import { readMeta, sumOfRow } from './schema.ts'
import { SLOTS } from './table.ts'

/**
 * Combines many rows into one: their fields as JSON, and their texts concatenated. Row by row takes twice as long, and a buffer per
 * text takes a quarter more memory. A buffer is freed when its last text is superseded, so each has few texts. The texts of a larger
 * buffer than `maxShared` are copied, because one small text would keep all of it in memory.
 */
const chunkWith = (sum: string) => `
  SELECT json_group_array(json_array(id, bucket, namespace, name, previous, gap, time, ifnull(length(text), 0), ${sum})),
    CAST(group_concat(text, '') AS BLOB)
  FROM (SELECT * FROM log WHERE id > ? ORDER BY id LIMIT 64)`
type Fields = readonly [number, string, string, string, number, number, number, number, number]

const maxShared = 256 * 1024
const maxListed = 5

/** Rows as JSON, and their texts one after the other. `floor`: where the history begins. A message between threads. */
export type LogChunk = { readonly floor: number; readonly rows: string; readonly texts: Uint8Array }

/**
 * The last chunk is empty. `isChecked`: throws after the last row if a record is damaged, so that no client sees it and no write hides it. Files of the first
 * format have no checksums.
 */
export function* readLog(file: string, isChecked: boolean): Generator<LogChunk> {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  try {
    db.exec('BEGIN') // a consistent snapshot during concurrent writes
    const floor = readMeta(db, 'floor')
    if (floor === undefined) throw new DamagedError('the start of the history (meta floor) is missing')
    const chunk = db.prepare(chunkWith(isChecked ? 'sum' : '0'))
    chunk.setReturnArrays(true)
    const damaged: string[] = []
    for (let last = 0; ; ) {
      const [rows, slab] = chunk.get(last) as unknown as [string, Uint8Array | null]
      const texts = slab ?? new Uint8Array(0)
      const fields = JSON.parse(rows) as Fields[]
      if (isChecked) damaged.push(...damagedIn(fields, texts))
      if (damaged.length === 0) yield { floor, rows, texts }
      const end = fields.at(-1)
      if (end === undefined) break
      last = end[0]
    }
    if (damaged.length) throw damagedError(damaged)
  } finally {
    db.close()
  }
}

function* textsOf(rows: readonly Fields[], texts: Uint8Array): Generator<readonly [Fields, Buffer]> {
  const slab = Buffer.from(texts.buffer, texts.byteOffset, texts.byteLength)
  let start = 0
  for (const row of rows) {
    const end = start + row[7]
    yield [row, slab.subarray(start, end)]
    start = end
  }
}

function damagedIn(rows: readonly Fields[], texts: Uint8Array): string[] {
  return [...textsOf(rows, texts)].flatMap(([row, text]) =>
    isDamaged(row, text) ? [`${row[1]} ${row[2]}/${row[3]}`] : [],
  )
}

function damagedError(damaged: readonly string[]): DamagedError {
  const named = `${damaged.slice(0, maxListed).join(', ')}${damaged.length > maxListed ? ' and others' : ''}`
  return new DamagedError(
    `${damaged.length} ${damaged.length === 1 ? 'record has' : 'records have'} a wrong checksum (${named})`,
  )
}

/** Returns a function that loads one chunk after the other. */
export function openLoader(watchCache: WatchCache): (chunk: LogChunk) => void {
  const words = new Map<string, string>()
  let isBegun = false
  return ({ floor, rows, texts }) => {
    if (!isBegun) watchCache.begin(floor, floor)
    isBegun = true
    const own = texts.byteLength > maxShared ? copyOf : (text: Buffer) => text
    for (const [row, text] of textsOf(JSON.parse(rows) as Fields[], texts))
      loadRow(row, own(text), watchCache, floor, words)
  }
}

function copyOf(text: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(text.length)
  text.copy(copy)
  return copy
}

/** Reads and loads on one thread, without checksums. */
export function loadLog(file: string, watchCache: WatchCache): void {
  const load = openLoader(watchCache)
  for (const chunk of readLog(file, false)) load(chunk)
}

function isDamaged([id, bucket, namespace, name, previous, gap, time, , sum]: Fields, text: Buffer): boolean {
  return sum !== sumOfRow({ id, bucket, namespace, name, previous, gap, time, text })
}

function loadRow(row: Fields, text: Buffer, watchCache: WatchCache, floor: number, words: Map<string, string>): void {
  const [id, bucket, namespace, name, before, gap, time] = row
  const revision = Math.floor(id / SLOTS)
  const wanted: Key = { bucket: shared(bucket, words), namespace: shared(namespace, words), name }
  const previous = watchCache.get(wanted)
  const key = previous?.key ?? wanted
  if (revision > floor && (previous?.revision ?? 0) !== before) {
    throw new DamagedError(
      `the history of ${bucket} ${namespace}/${name} has a gap: revision ${revision} does not follow revision ${before}`,
    )
  }
  const entry = gap === 0 ? undefined : { key, revision, text, labels: labelsOf(text), gap, terms: undefined }
  if (revision <= floor) watchCache.seed(key, entry)
  else if (entry !== undefined) {
    const type = previous === undefined ? 'created' : 'updated'
    watchCache.apply([{ type, revision, key, entry, previous }], revision, time)
  } else if (previous !== undefined) {
    const last = withRevision(previous, revision)
    watchCache.apply([{ type: 'deleted', revision, key, entry: last, previous }], revision, time)
  }
}

/** Shares one string among all objects that repeat it. */
function shared(word: string, words: Map<string, string>): string {
  const known = words.get(word)
  if (known !== undefined) return known
  words.set(word, word)
  return word
}

/** Ids and times of the side table (D19). */
export function loadTimes(file: string): Map<string, number> {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  const rows = db.prepare('SELECT id, time FROM times').all() as { id: string; time: number }[]
  db.close()
  return new Map(rows.map(row => [row.id, row.time]))
}
