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
 * text takes a quarter more memory. A buffer is freed when its last text is superseded, so each has few texts.
 */
const chunkWith = (sum: string) => `
  SELECT json_group_array(json_array(id, bucket, namespace, name, previous, gap, time, ifnull(length(text), 0), ${sum})),
    CAST(group_concat(text, '') AS BLOB)
  FROM (SELECT * FROM log WHERE id > ? ORDER BY id LIMIT 64)`
type Fields = readonly [number, string, string, string, number, number, number, number, number]

const maxListed = 5

/**
 * Runs on the main thread, which needs the objects and has nothing else to do yet. `isChecked`: throws if a record is damaged, so
 * that no client sees it and no write hides it. Files of the first format have no checksums.
 */
export function loadLog(file: string, watchCache: WatchCache, isChecked = false): void {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  db.exec('BEGIN') // a consistent snapshot during concurrent writes
  const words = new Map<string, string>()
  const floor = readMeta(db, 'floor')
  if (floor === undefined) throw new DamagedError('the start of the history (meta floor) is missing')
  watchCache.begin(floor, floor)
  const chunk = db.prepare(chunkWith(isChecked ? 'sum' : '0'))
  chunk.setReturnArrays(true)
  const damaged: string[] = []
  for (let last = 0; ; ) {
    const [json, slab] = chunk.get(last) as unknown as [string, Uint8Array | null]
    const rows = JSON.parse(json) as Fields[]
    if (rows.length === 0) break
    const texts = slab === null ? Buffer.alloc(0) : Buffer.from(slab.buffer, slab.byteOffset, slab.byteLength)
    let start = 0
    for (const row of rows) {
      const end = start + row[7]
      const text = texts.subarray(start, end)
      if (isChecked && isDamaged(row, text)) damaged.push(`${row[1]} ${row[2]}/${row[3]}`)
      else if (damaged.length === 0) loadRow(row, text, watchCache, floor, words)
      last = row[0]
      start = end
    }
  }
  db.close()
  if (damaged.length === 0) return
  const named = `${damaged.slice(0, maxListed).join(', ')}${damaged.length > maxListed ? ' and others' : ''}`
  throw new DamagedError(
    `${damaged.length} ${damaged.length === 1 ? 'record has' : 'records have'} a wrong checksum (${named})`,
  )
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
