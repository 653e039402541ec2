// `platform verify` for data directories and backups, and the errors of `serve` for a damaged store.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { type LogRow, sumOfRow } from '../../src/storage/sqlite/schema.ts'
import { startServer } from '../support/server.ts'
import { group, openWire } from '../support/wire.ts'

const program = new URL('../../bin/platform.js', import.meta.url).pathname
const json = { 'content-type': 'application/json' }
const secret = 'a-value-that-only-the-key-ring-opens'

describe('verify', { timeout: 120_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'platform-verify-'))
  const env = { PATH: process.env['PATH'] }
  const run = (words: string, input?: Buffer) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words.split(' ')], {
      cwd: scratch,
      env,
      ...(input ? { input } : {}),
    })
    return { status, stdout: String(stdout), stderr: String(stderr) }
  }
  let whole: Buffer
  before(async () => {
    // Ended without its directory: a copy of it is what is looked at.
    const server = await startServer()
    const wire = openWire(server)
    const post = async (path: string, body: object) =>
      assert.equal(
        (await wire(`${group}/${path}`, { method: 'POST', headers: json, body: JSON.stringify(body) })).code,
        201,
      )
    for (const name of ['web', 'db']) await post('teams', { metadata: { name }, spec: { users: ['ada'] } })
    // More than a piece of a backup holds, twice.
    for (const name of ['one', 'two', 'three', 'four', 'five'])
      await post('namespaces/default/sharedsecrets', {
        metadata: { name },
        spec: {
          data: { password: Buffer.from(secret).toString('base64'), much: Buffer.alloc(150_000).toString('base64') },
        },
      })
    assert.equal(run(`backup ${scratch}/platform.backup --data ${server.directory}`).status, 0)
    mkdirSync(join(scratch, 'data'))
    cpSync(join(server.directory, 'master.key'), join(scratch, 'data/master.key'))
    await server.stop()
    assert.equal(run('restore platform.backup --data data').status, 0)
    whole = readFileSync(join(scratch, 'platform.backup'))
  })
  after(() => rmSync(scratch, { recursive: true, force: true }))

  test('the data directory is an argument, --data, PLATFORM_DATA, or ./data', () => {
    const said = run('verify data')
    assert.equal(said.status, 0, said.stderr)
    assert.match(said.stderr, /ok: \d+ records up to revision \d+, with encrypted values and indexes/)
    for (const words of ['verify --data data', 'verify', 'verify data --data data'])
      assert.deepEqual(run(words), said, words)
    const twice = run('verify data --data other')
    assert.equal(twice.status, 2)
    assert.match(twice.stderr, /two data directories: .*data and .*other/)
    const none = run('verify nowhere')
    assert.equal(none.status, 2)
    assert.match(none.stderr, /nowhere: no such file or directory/)
    mkdirSync(join(scratch, 'empty'))
    assert.match(run('verify empty').stderr, /has no platform\.db: it is not a data directory/)
  })

  test('a backup is read completely, from a file or a pipe, with the key ring of --master-key or --data', () => {
    for (const words of [
      'verify platform.backup',
      'verify platform.backup --data data',
      'verify platform.backup --master-key data/master.key',
    ]) {
      const { status, stdout, stderr } = run(words)
      assert.equal(status, 0, stderr)
      assert.equal(stdout, '')
      assert.match(stderr, /platform\.backup: ok: \d+ objects of revision \d+, with encrypted values/)
    }
    const piped = run('verify -', whole)
    assert.equal(piped.status, 0, piped.stderr)
    const words = `exec '${process.execPath}' '${program}' verify <(cat platform.backup)`
    const substituted = spawnSync('bash', ['-c', words], { cwd: scratch, env })
    assert.equal(substituted.status, 0, String(substituted.stdout) + String(substituted.stderr))
    const ringless = run('verify platform.backup --data elsewhere')
    assert.equal(ringless.status, 2)
    assert.match(ringless.stderr, /the key ring is not in the backup: set --master-key, or --data to its directory/)
    writeFileSync(join(scratch, 'other.key'), `abc ${Buffer.alloc(32, 7).toString('base64')}\n`)
    const foreign = run('verify platform.backup --master-key other.key')
    assert.equal(foreign.status, 2)
    assert.match(foreign.stderr, /is encrypted with the key [0-9a-f]+, which is not in the key ring \(keys: abc\)/)
    const database = run('verify data/platform.db')
    assert.equal(database.status, 2)
    assert.match(database.stderr, /platform\.db is the database of a data directory: use platform verify .*data/)
  })

  test('every changed piece of a backup is reported, and so is a truncated, extended or invalid one', () => {
    const spoiled = (bytes: Buffer) => {
      const { status, stdout, stderr } = run('verify -', bytes)
      assert.equal(status, 1, stdout + stderr)
      return { stdout, stderr }
    }
    const flipped = (...places: number[]) => {
      const bytes = Buffer.from(whole)
      for (const at of places) bytes[at] = (bytes[at] as number) ^ 1
      return bytes
    }
    const first = whole.indexOf(10) + 1
    const second = first + 4 + whole.readUInt32BE(first)
    const both = spoiled(flipped(first + 100, second + 100))
    assert.match(both.stdout, /^chunk 1 was modified .*\nchunk 2 was modified .*\n$/)
    assert.match(both.stderr, /2 problems .*restore fails/)
    const one = spoiled(flipped(second + 100))
    assert.match(one.stdout, /^chunk 2 was modified .*\n$/)
    assert.match(one.stderr, /1 problem in/)
    assert.match(spoiled(whole.subarray(0, -10)).stdout, /the backup is truncated/)
    assert.match(spoiled(whole.subarray(0, second)).stdout, /chunk 1 was modified or truncated/)
    assert.match(spoiled(whole.subarray(0, first)).stdout, /the backup is truncated/)
    spoiled(Buffer.concat([whole, Buffer.from('x')]))
    for (const bytes of [Buffer.alloc(0), Buffer.from('hello\n')])
      assert.match(spoiled(bytes).stdout, /not a backup of this platform/)
  })

  test('a record of another object in a backup, and a moved encrypted value, are reported', () => {
    cpSync(join(scratch, 'data'), join(scratch, 'moved'), { recursive: true })
    const db = new DatabaseSync(join(scratch, 'moved/platform.db'))
    const rowOf = (name: string) =>
      db
        .prepare(
          "SELECT * FROM log WHERE name = ? AND bucket LIKE '%teams%' OR name = ? AND bucket LIKE '%sharedsecrets%'",
        )
        .get(name, name) as unknown as LogRow
    const change = (row: LogRow, text: string) => {
      const next = { ...row, text: Buffer.from(text) }
      db.prepare('UPDATE log SET text = ?, sum = ? WHERE id = ?').run(next.text, sumOfRow(next), row.id)
    }
    const textOf = ({ text }: LogRow) => Buffer.from(text ?? []).toString()
    change(rowOf('web'), textOf(rowOf('db')))
    const sealOf = (row: LogRow) => JSON.parse(textOf(row)).spec.data as string
    change(rowOf('one'), textOf(rowOf('one')).replace(sealOf(rowOf('one')), sealOf(rowOf('two'))))
    const moved = sealOf(rowOf('two'))
    db.close()
    assert.equal(run('backup moved.backup --data moved').status, 0)
    const { status, stdout, stderr } = run('verify moved.backup')
    assert.equal(status, 1, stderr)
    const lines = stdout.trim().split('\n')
    assert.equal(lines.length, 2, stdout)
    assert.match(lines[0] as string, /teams\S* web\): the data belongs to another object/)
    assert.match(lines[1] as string, /"one".*cannot be decrypted|one.*cannot be decrypted/)
    assert.equal(stdout.includes(secret) || stdout.includes(moved), false)
  })

  test('unreadable input does not count as damage: the error says what to do, and the exit code is 2', async () => {
    const refused = (words: string) => {
      const { status, stdout, stderr } = run(words)
      assert.equal(status, 2, stdout + stderr)
      assert.equal(stdout, '')
      return stderr
    }
    const db = new DatabaseSync(join(scratch, 'data/platform.db'))
    db.exec('BEGIN EXCLUSIVE')
    const busy = refused('verify data')
    db.close()
    assert.match(
      busy,
      /data\/platform\.db was not verified: another process has locked the database .*: retry when that process has ended/,
    )
    mkdirSync(join(scratch, 'unreadable/platform.db'), { recursive: true })
    cpSync(join(scratch, 'data/master.key'), join(scratch, 'unreadable/master.key'))
    assert.match(refused('verify unreadable'), /cannot read .*unreadable\/platform\.db: it is a directory/)
    cpSync(join(scratch, 'data'), join(scratch, 'shut'), { recursive: true })
    const logged = new DatabaseSync(join(scratch, 'shut/platform.db'))
    logged.exec('PRAGMA journal_mode = WAL')
    logged.close()
    mkdirSync(join(scratch, 'shut/platform.db-wal'))
    assert.match(
      refused('verify shut'),
      /shut\/platform\.db was not verified: the database file cannot be opened .*: the file and its -wal and -shm files must be readable, and the directory writable/,
    )
    symlinkSync('circle', join(scratch, 'circle'))
    assert.match(refused('verify circle'), /circle: .*too many symbolic links/)
  })

  test('a broken lock is reported as removable; backup reports a damaged store, too', () => {
    cpSync(join(scratch, 'data'), join(scratch, 'locked'), { recursive: true })
    writeFileSync(join(scratch, 'locked/lock.db'), 'no database '.repeat(200))
    const { status, stderr } = run('serve --data locked --https off --http 127.0.0.1:0')
    assert.equal(status, 1)
    assert.match(stderr, /locked\/lock\.db is damaged: file is not a database\. It contains no data: delete it/)
    writeFileSync(join(scratch, 'locked/platform.db'), 'no database '.repeat(200))
    const backup = run('backup locked.backup --data locked')
    assert.equal(backup.status, 1)
    const looked = run('verify locked')
    assert.equal(looked.status, 1)
    assert.equal(looked.stdout, 'the file cannot be read: the database file is damaged (file is not a database)\n')
    assert.match(looked.stderr, /1 problem in 0 records/)
    assert.match(backup.stderr, /locked\/platform\.db is damaged: file is not a database\. platform verify /)
  })

  test('serve reports a file that is not a database, or a damaged one, with the problem and what to do', () => {
    const broken = (name: string, spoil: (bytes: Buffer) => Buffer) => {
      cpSync(join(scratch, 'data'), join(scratch, name), { recursive: true })
      const file = join(scratch, name, 'platform.db')
      writeFileSync(file, spoil(readFileSync(file)))
      const { status, stdout, stderr } = run(`serve --data ${name} --https off --http 127.0.0.1:0`)
      assert.equal(status, 1, stdout + stderr)
      assert.equal(stdout, '')
      assert.equal(stderr.trim().split('\n').length, 1, stderr)
      assert.ok(stderr.includes(`${file} `), stderr)
      assert.match(stderr, new RegExp(`platform verify \\S*${name} lists .*platform restore `), stderr)
      return stderr
    }
    assert.match(
      broken('foreign', () => Buffer.from('no database '.repeat(200))),
      /file is not a database/,
    )
    assert.match(
      broken('torn', bytes => bytes.fill(0xff, 4096, 40_000)),
      /malformed|damaged/,
    )
    assert.match(
      broken('short', bytes => bytes.subarray(0, 5000)),
      /malformed|damaged/,
    )
    assert.match(
      broken('other', () => {
        const file = join(scratch, 'other.db')
        const db = new DatabaseSync(file)
        db.exec('CREATE TABLE somebody (else TEXT)'.replace('else', 'other'))
        db.close()
        return readFileSync(file)
      }),
      /is not a database of this platform/,
    )
  })
})
