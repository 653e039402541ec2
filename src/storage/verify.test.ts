// Verification finds every kind of damage: each flipped byte is reported or has no visible effect.

import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { loadLog, loadTimes } from './sqlite/load.ts'
import { bringUpToDate, type LogRow } from './sqlite/schema.ts'
import { openTable, SLOTS } from './sqlite/table.ts'
import { verifyFile } from './verify.ts'
import { openWatchCache } from './watch-cache.ts'

const fixture = join(import.meta.dirname, '../../test/fixtures/store/format-2.db')
const directory = mkdtempSync(join(tmpdir(), 'platform-verify-'))
const file = join(directory, 'platform.db')
after(() => rmSync(directory, { recursive: true, force: true }))

/** Everything that a server would return from a file: objects, revision and times; or that it would not start. */
function shown(): string {
  try {
    const watchCache = openWatchCache()
    loadLog(file, watchCache)
    const db = new DatabaseSync(file, { readOnly: true })
    const buckets = db.prepare('SELECT DISTINCT bucket FROM log ORDER BY bucket').all()
    db.close()
    const texts = buckets.map(({ bucket }) =>
      watchCache.list({ bucket: String(bucket) }).entries.map(({ key, text }) => [key, text.toString('latin1')]),
    )
    return JSON.stringify([watchCache.revision, texts, [...loadTimes(file)]])
  } catch (error) {
    return `it does not start: ${(error as Error).message}`
  }
}

test('each byte of a sample flipped, one at a time: verify reports it, or no visible value changes', () => {
  const whole = readFileSync(fixture)
  writeFileSync(file, whole)
  assert.deepEqual(verifyFile(file).damages, [])
  const before = shown()
  const stride = Number(process.env['VERIFY_STRIDE'] ?? 101)
  const unseen: number[] = []
  let told = 0
  for (let at = 0; at < whole.length; at += stride)
    for (const mask of [0x01, 0xff]) {
      const damaged = Buffer.from(whole)
      damaged[at] = (damaged[at] as number) ^ mask
      writeFileSync(file, damaged)
      if (verifyFile(file).damages.length) told++
      else if (shown() !== before) unseen.push(at)
    }
  assert.deepEqual(unseen, [])
  assert.ok(told > 100, String(told))
})

test('a record of another object, of another revision, missing or moved is named', () => {
  const spoiled = (sql: string) => {
    copyFileSync(fixture, file)
    const db = new DatabaseSync(file)
    db.exec(sql)
    db.close()
    return verifyFile(file).damages.join('\n')
  }
  assert.match(spoiled("UPDATE log SET name = 'other' WHERE name = 'db' AND namespace = ''"), /other\): wrong checksum/)
  assert.match(spoiled("UPDATE log SET text = replace(text, 'ada', 'eve') WHERE name = 'db'"), /wrong checksum/)
  assert.match(
    spoiled('DELETE FROM log WHERE id = (SELECT id FROM log ORDER BY id LIMIT 1 OFFSET 8)'),
    /the revision before it is missing/,
  )
  assert.match(spoiled('UPDATE times SET time = time + 1'), /times ".*": wrong checksum/)
  assert.match(spoiled("UPDATE meta SET value = 7 WHERE name = 'floor'"), /meta floor: wrong checksum/)
  assert.match(spoiled('DROP TABLE times'), /the table times cannot be read/)
})

test('a store of another format, or in migration, is not reported as damaged', () => {
  copyFileSync(fixture.replace('format-2', 'format-1'), file)
  const older = verifyFile(file)
  assert.deepEqual(older.damages, [])
  assert.match(older.otherFormat ?? '', /format 1, which has no checksums/)
  const db = new DatabaseSync(file)
  assert.throws(() =>
    bringUpToDate(db, {
      stepped: () => {
        throw new Error('interrupted')
      },
    }),
  )
  db.close()
  const between = verifyFile(file)
  assert.deepEqual([between.damages, /migration incomplete/.test(between.otherFormat ?? '')], [[], true])
})

test('re-encryption does not give a damaged record a correct checksum', () => {
  const replaced = (spoil: string) => {
    copyFileSync(fixture, file)
    const db = new DatabaseSync(file)
    if (spoil) db.exec(spoil)
    const row = db.prepare("SELECT * FROM log WHERE bucket LIKE 'sharedsecrets%' ORDER BY id DESC LIMIT 1").get()
    db.close()
    const { id, bucket, namespace, name, gap, text } = row as unknown as LogRow
    const table = openTable({ file })
    const revision = Math.floor(id / SLOTS)
    table.replace([{ revision, bucket, namespace, name, gap, text: text as Uint8Array }])
    table.close()
    return verifyFile(file).damages
  }
  assert.deepEqual(replaced(''), [])
  assert.match(replaced("UPDATE log SET time = time + 1 WHERE name = 'db'").join(), /wrong checksum/)
})
