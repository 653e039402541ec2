// Opens files of every earlier format: the migration loses nothing, and an interrupted one continues.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { openStorage, readStored } from '../index.ts'
import { verifyFile } from '../verify.ts'
import { bringUpToDate, FILE_VERSION, readMeta } from './schema.ts'

const fixtures = join(import.meta.dirname, '../../../test/fixtures/store')
const scratch: string[] = []
after(() => {
  for (const directory of scratch) rmSync(directory, { recursive: true, force: true })
})

/** A data directory with a file of that format. */
function copyOf(format: number): string {
  const directory = mkdtempSync(join(tmpdir(), 'platform-format-'))
  scratch.push(directory)
  copyFileSync(join(fixtures, `format-${format}.db`), join(directory, 'platform.db'))
  return directory
}

const buckets = ['teams', 'sharedsecrets', 'ownedaccesskeys', 'secretversions', 'clusterroles', 'clusterrolebindings']
/** The complete contents, byte for byte. */
const contents = (directory: string) => {
  const store = readStored(directory)
  return buckets.flatMap(bucket =>
    ['management.platform.sh', 'rbac.authorization.k8s.io'].flatMap(group =>
      store.list({ bucket: `${bucket}.${group}` }).entries.map(({ key, revision, text }) => ({
        ...key,
        revision,
        text: text.toString(),
      })),
    ),
  )
}
const timesIn = (directory: string) => {
  const db = new DatabaseSync(join(directory, 'platform.db'), { readOnly: true })
  const rows = db.prepare('SELECT id, time FROM times').all()
  db.close()
  return rows.map(row => [row['id'], row['time']])
}

for (let format = 1; format <= FILE_VERSION; format++)
  test(`a file of format ${format} is migrated at the start, and keeps its content`, async () => {
    const directory = copyOf(format)
    const [before, times] = [contents(directory), timesIn(directory)]
    assert.ok(before.length > 10 && times.length === 1, 'the fixture holds something')
    const storage = await openStorage({ engine: 'sqlite', directory, now: Date.now })
    const { revision } = storage.store
    await storage.close()
    assert.deepEqual([contents(directory), timesIn(directory)], [before, times])
    assert.deepEqual(verifyFile(join(directory, 'platform.db')).damages, [])
    const again = await openStorage({ engine: 'sqlite', directory, now: Date.now })
    assert.equal(again.store.revision, revision)
    await again.close()
  })

test('a migration that is killed at any step continues there, and no older program can write meanwhile', async () => {
  const directory = copyOf(1)
  const file = join(directory, 'platform.db')
  grow(file, 5000)
  const before = contents(directory)
  const program = `
    import { DatabaseSync } from 'node:sqlite'
    import { bringUpToDate } from '${import.meta.dirname}/schema.ts'
    const db = new DatabaseSync('${file}')
    bringUpToDate(db, { stepped: () => { process.kill(process.pid, 'SIGKILL') } })
    db.close()
    process.exit(0)`
  let deaths = 0
  for (let isOver = false; !isOver; ) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'ignore' })
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
    isOver = code === 0
    if (isOver) break
    assert.equal(signal, 'SIGKILL')
    deaths++
    const db = new DatabaseSync(file, { readOnly: true })
    assert.equal(readMeta(db, 'version'), FILE_VERSION, 'an older program refuses it from the first step on')
    db.close()
  }
  assert.equal(deaths, 6, 'one death a step of a thousand rows')
  assert.deepEqual(verifyFile(file).damages, [])
  assert.deepEqual(contents(directory), before)
})

test('a file of a newer format is rejected with the required format, and unchanged', () => {
  const file = join(copyOf(FILE_VERSION), 'platform.db')
  const db = new DatabaseSync(file)
  db.exec(`UPDATE meta SET value = ${FILE_VERSION + 1} WHERE name = 'version'`)
  const needed = new RegExp(`has format ${FILE_VERSION + 1}, but .* supports formats up to ${FILE_VERSION}`)
  assert.throws(() => bringUpToDate(db), needed)
  assert.equal(readMeta(db, 'version'), FILE_VERSION + 1)
  db.close()
})

/** Adds rows in format 1. */
function grow(file: string, rows: number): void {
  const db = new DatabaseSync(file)
  const { top } = db.prepare('SELECT max(id) AS top FROM log').get() as { top: number }
  const insert = db.prepare('INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  db.exec('BEGIN')
  for (let n = 1; n <= rows; n++) {
    const revision = Math.floor(top / 1024) + n
    const head = `{"metadata":{"name":"n${n}","resourceVersion":"`
    insert.run(
      revision * 1024,
      'teams.management.platform.sh',
      '',
      `n${n}`,
      0,
      head.length,
      1,
      Buffer.from(`${head}${revision}"}}`),
    )
  }
  db.exec('COMMIT')
  db.close()
}
