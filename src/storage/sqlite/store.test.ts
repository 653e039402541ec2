// Runs the store suite on the SQLite engine, and tests what only a file has: restarts, crashes, full disks, two servers.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, afterEach, describe, test } from 'node:test'
import { storeSuite } from '../../../test/conformance/store.ts'
import { key, refused, value } from '../../../test/conformance/store-samples.ts'
import { exec } from '../../../test/support/exec.ts'
import { openSqliteStore, type SqliteOptions, type SqliteStore } from './store.ts'
import { openTable, UnclearError } from './table.ts'
import { openSqliteThread, ThreadLostError } from './thread.ts'

const room = mkdtempSync(join(tmpdir(), 'platform-sqlite-'))
after(() => rmSync(room, { recursive: true, force: true }))
const scratch = () => join(mkdtempSync(join(room, 'data-')), 'platform.db')
/** Closed after the test even if it fails: an open store keeps the process alive. */
const opened: SqliteStore[] = []
afterEach(() => Promise.all(opened.splice(0).map(store => store.close())))
async function open(options: SqliteOptions): Promise<SqliteStore> {
  const store = await openSqliteStore(options)
  opened.push(store)
  return store
}
const put = (name: string, note = '', expect?: number) =>
  ({ type: 'put', key: key(name), value: value({ note }), ...(expect === undefined ? {} : { expect }) }) as const

storeSuite('sqlite', options => open({ ...options, file: scratch() }), 40)

describe('sqlite: restarts', () => {
  test('a record with a wrong checksum prevents opening; the error names it and what to do', async () => {
    const file = scratch()
    const store = await open({ file })
    for (const name of ['a', 'b', 'c']) await store.commit([put(name, 'before')])
    await store.close()
    const db = new DatabaseSync(file)
    db.exec(
      "UPDATE log SET text = CAST(replace(CAST(text AS TEXT), 'before', 'beXore') AS BLOB) WHERE name IN ('a', 'c')",
    )
    db.close()
    await assert.rejects(
      open({ file }),
      new RegExp(
        `${file} is damaged: 2 records have a wrong checksum \\(teams\\.test /a, teams\\.test /c\\)\\. platform verify \\S+ lists all damage`,
      ),
    )
  })

  test('a file that is not a database is reported, with the cache and for every way to await the promise', async () => {
    const file = scratch()
    writeFileSync(file, 'this is not a database, and long enough to be seen as such '.repeat(20))
    const program = `
      import { openSqliteStore } from ${JSON.stringify(new URL('./store.ts', import.meta.url).href)}
      await openSqliteStore({ file: ${JSON.stringify(file)} }).catch(error => console.log(String(error)))`
    for (const how of ['throw', 'none']) {
      const env = {
        ...process.env,
        NODE_COMPILE_CACHE: join(room, 'compiled'),
        NODE_OPTIONS: `--unhandled-rejections=${how}`,
      }
      const { stdout } = await exec(process.execPath, ['--input-type=module', '-e', program], { env })
      assert.match(stdout, /file is not a database/, how)
    }
  })

  test('the next start uses the compile cache of the storage thread', async () => {
    const program = `
      import { openSqliteStore } from ${JSON.stringify(new URL('./store.ts', import.meta.url).href)}
      const store = await openSqliteStore({ file: ${JSON.stringify(scratch())} })
      await store.close()`
    const env = { ...process.env, NODE_COMPILE_CACHE: join(room, 'compiled'), NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }
    const start = () => exec(process.execPath, ['--input-type=module', '-e', program], { env })
    assert.equal((await start()).code, 0)
    const { code, stderr } = await start()
    assert.equal(code, 0, stderr)
    assert.match(stderr, /code cache for ESM \S*sqlite\/worker\.ts was accepted/)
  })

  test('a reopened store has the same values, revisions and events, and continues counting', async () => {
    const file = scratch()
    const first = await open({ file })
    await first.commit([
      put('a', 'one'),
      { type: 'put', key: key('s', 'ns', 'secrets.test'), value: value({ labels: { app: 'x' } }) },
    ])
    await first.commit([put('a', 'zwei ü')])
    await first.commit([put('b')])
    await first.commit([{ type: 'delete', key: key('b') }])
    const events = first.watch('teams.test', 1).take(99)
    await first.close()
    const second = await open({ file })
    assert.equal(second.revision, 5)
    assert.deepEqual(second.watch('teams.test', 1).take(99), events)
    assert.deepEqual(
      second.list({ bucket: 'teams.test', revision: 4 }).entries.map(entry => entry.key.name),
      ['a', 'b'],
    )
    const labelled = second.list({ bucket: 'secrets.test', labels: [{ key: 'app', values: ['x'] }] })
    assert.deepEqual(
      labelled.entries.map(entry => entry.text.toString()),
      ['{"metadata":{"labels":{"app":"x"},"resourceVersion":"2"},"note":""}'],
    )
    assert.equal(await second.commit([put('c')]), 6)
    await second.close()
  })

  test('a reopened store keeps no other texts in memory with a text, unless all of them are small', async () => {
    const file = scratch()
    const first = await open({ file })
    const note = (at: number) => (at === 0 || at >= 64 ? 'small' : 'x'.repeat(10_000))
    for (let at = 0; at < 128; at++) await first.commit([put(`a${at}`, note(at))])
    await first.close()
    const second = await open({ file })
    const loaded = Array.from({ length: 128 }, (_, at) => second.get(key(`a${at}`))?.text ?? Buffer.alloc(0))
    for (const [at, text] of loaded.entries())
      assert.equal(JSON.parse(text.toString()).note, note(at), `the text of a${at}`)
    for (const text of loaded.slice(0, 64)) assert.equal(text.buffer.byteLength, text.byteLength)
    // The rows of a chunk share a buffer, which takes less memory.
    assert.equal(new Set(loaded.slice(64).map(text => text.buffer)).size, 1)
  })

  test('a reopened store has the replaced text at the same revision', async () => {
    const file = scratch()
    const first = await open({ file })
    await first.commit([put('a', 'old'), { type: 'put', key: key('a', '', 'secrets.test'), value: value() }])
    await first.commit([put('b', 'kept')])
    assert.equal(await first.replace([{ key: key('a'), revision: 2, value: value({ note: 'new' }) }]), 1)
    const events = first.watch('teams.test', 1).take(99)
    await first.close()
    await refused(first.replace([{ key: key('a'), revision: 2, value: value() }]), 'unavailable')
    const second = await open({ file })
    assert.match(second.get(key('a'))?.text.toString() ?? '', /"resourceVersion":"2"},"note":"new"/)
    assert.match(second.get(key('a', '', 'secrets.test'))?.text.toString() ?? '', /"note":""/)
    assert.deepEqual(second.watch('teams.test', 1).take(99), events)
    assert.equal(second.revision, 3)
  })

  test('compaction removes superseded rows and deletions from the file, and the counter never goes back', async () => {
    const file = scratch()
    let clock = 0
    const options = { file, now: () => clock, history: { minAgeMs: 10, minEvents: 0 } }
    const store = await open(options)
    await Promise.all(Array.from({ length: 2500 }, (_, i) => store.commit([put(`n${i % 50}`)])))
    for (let i = 10; i < 50; i++) await store.commit([{ type: 'delete', key: key(`n${i}`) }])
    clock = 10
    await store.compact(store.revision)
    await store.close()
    const rows = new DatabaseSync(file, { readOnly: true })
    assert.deepEqual({ ...rows.prepare('SELECT count(*) AS n FROM log').get() }, { n: 10 })
    rows.close()
    const again = await open(options)
    assert.equal(again.revision, 2541)
    assert.equal(again.count('teams.test'), 10)
    assert.throws(() => again.watch('teams.test', 2540), /too old/)
    assert.equal(await again.commit([put('n10', '', 0)]), 2542)
    await again.close()
  })

  test('a database of a newer format is rejected by name', async () => {
    const file = scratch()
    await (await open({ file })).close()
    const db = new DatabaseSync(file)
    db.exec("UPDATE meta SET value = 99 WHERE name = 'version'")
    db.close()
    await assert.rejects(
      open({ file }),
      /has format 99, but this version of platform supports formats up to 2: use a newer version/,
    )
  })

  test('a log with a gap is rejected as damaged', async () => {
    const file = scratch()
    const store = await open({ file })
    for (let i = 0; i < 3; i++) await store.commit([put('a')])
    await store.close()
    const db = new DatabaseSync(file)
    db.exec('DELETE FROM log WHERE id = (SELECT id FROM log LIMIT 1 OFFSET 1)')
    db.close()
    await assert.rejects(open({ file }), /damaged/)
  })

  test('the file is for its owner only', async () => {
    const file = scratch()
    await (await open({ file })).close()
    assert.equal(statSync(file).mode & 0o077, 0)
  })
})

describe('sqlite: state after a failed write', () => {
  test('a directory without write permission is rejected with the reason', async () => {
    await assert.rejects(open({ file: '/proc/platform/platform.db' }), /cannot use the data directory \/proc/)
  })

  test('a rejection based on a failed batch becomes unavailable; one based on durable state stays', async () => {
    let broken = false
    const openThread: typeof openSqliteThread = async data => {
      const thread = await openSqliteThread(data)
      const call: typeof thread.call = (request, transfer) =>
        broken && request.type !== 'close'
          ? Promise.reject(new Error('the disk is full'))
          : thread.call(request, transfer)
      return { ...thread, call }
    }
    const told: unknown[] = []
    const store = await open({ file: scratch(), openThread, probeMs: 5, reportFailure: failure => told.push(failure) })
    await store.commit([put('old')])
    broken = true
    const [a, b, c] = [
      store.commit([put('a', '', 0)]),
      store.commit([put('a', '', 0)]),
      store.commit([put('old', '', 0)]),
    ]
    await Promise.all([refused(a, 'unavailable'), refused(b, 'unavailable'), refused(c, 'exists')])
    assert.equal(store.failure, 'the disk is full')
    assert.equal(store.revision, 2)
    await refused(store.commit([put('d', '', 0)]), 'unavailable')
    assert.deepEqual(told, ['the disk is full'], 'once, however many fail')
    broken = false
    assert.equal(await store.commit([put('a', '', 0)]), 3)
    assert.equal(store.failure, undefined)
    assert.deepEqual(told, ['the disk is full', undefined])
    await store.close()
  })
})

describe('sqlite: a COMMIT whose outcome is unclear', () => {
  /** A database with one COMMIT that fails like a bad fsync, with or without effect. */
  const faulty = (happens: boolean) => (file: string) => {
    const db = new DatabaseSync(file)
    const exec = db.exec.bind(db)
    db.exec = sql => {
      if (sql !== 'COMMIT') return exec(sql)
      exec(happens ? 'COMMIT' : 'ROLLBACK')
      throw Object.assign(new Error('disk I/O error'), { errcode: 1034 })
    }
    return db
  }
  const batch = {
    rows: [{ revision: 2, slot: 0, bucket: 'b', namespace: '', name: 'n', previous: 0, gap: 1, text: 2 }],
    time: 0,
  }

  for (const happens of [true, false]) {
    test(`the table reports it and shows the stored state when reopened (it ${happens ? 'happened' : 'did not happen'})`, () => {
      const file = scratch()
      openTable({ file }).close()
      const table = openTable({ file, open: faulty(happens) })
      assert.throws(() => table.append({ ...batch, slab: Buffer.from('""') }), UnclearError)
      const settled = openTable({ file, settle: true })
      assert.equal(settled.revision, happens ? 2 : 1)
      settled.close()
    })

    test(`the store reads back before it responds (it ${happens ? 'happened' : 'did not happen'})`, async () => {
      let faults = 1
      const openThread: typeof openSqliteThread = async data => {
        const thread = await openSqliteThread(data)
        const call: typeof thread.call = async (request, transfer) => {
          if (request.type !== 'append' || faults-- <= 0) return thread.call(request, transfer)
          if (happens) await thread.call(request, transfer)
          await thread.close()
          throw new ThreadLostError('the storage thread ended')
        }
        return { ...thread, call }
      }
      const file = scratch()
      const store = await open({ file, openThread, probeMs: 5 })
      const first = store.commit([put('a', '', 0)])
      if (happens) assert.equal(await first, 2)
      else await refused(first, 'unavailable')
      assert.equal(await store.commit([put('b')]), happens ? 3 : 2)
      assert.equal(store.failure, undefined)
      await store.close()
      const again = await open({ file })
      assert.equal(again.get(key('a'))?.revision, happens ? 2 : undefined)
      await again.close()
    })
  }
})

describe('sqlite: speed that is part of the contract', () => {
  test('500 concurrent commits share a few transactions, each with its own revision', async () => {
    const store = await open({ file: scratch() })
    const revisions = await Promise.all(Array.from({ length: 500 }, (_, i) => store.commit([put(`n${i}`)])))
    assert.equal(new Set(revisions).size, 500)
    const { commits, transactions } = store.stats()
    assert.equal(commits, 500)
    assert.ok(transactions <= 25, `${transactions} transactions`)
    await store.close()
  })

  test('reads continue while a commit waits for the disk', async () => {
    const { promise: disk, resolve: release } = Promise.withResolvers<void>()
    let isSlow = false
    const openThread: typeof openSqliteThread = async data => {
      const thread = await openSqliteThread(data)
      const call: typeof thread.call = async (request, transfer) => {
        if (isSlow && request.type === 'append') await disk
        return thread.call(request, transfer)
      }
      return { ...thread, call }
    }
    const store = await open({ file: scratch(), openThread })
    await store.commit([put('a', 'before')])
    isSlow = true
    let isDone = false
    const commit = store.commit([put('a', 'after')]).then(() => {
      isDone = true
    })
    await new Promise(setImmediate)
    const [seen, wasDone] = [store.get(key('a'))?.revision, isDone]
    release()
    await commit
    assert.deepEqual([seen, wasDone], [2, false])
    assert.equal(store.get(key('a'))?.revision, 3)
    await store.close()
  })
})
