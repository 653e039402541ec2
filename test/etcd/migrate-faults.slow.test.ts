// `platform storage migrate` with wrong targets, values over the limit, damaged data, interruptions and a failing etcd.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { type EtcdClient, openEtcdClient } from '../../src/storage/etcd/client.ts'
import { keysBelow } from '../../src/storage/etcd/keys.ts'
import { openEtcdStore } from '../../src/storage/etcd/store.ts'
import { type EtcdCluster, startEtcd } from '../support/etcd.ts'
import { startServer } from '../support/server.ts'
import {
  createStore,
  keysOnly,
  opOf,
  platform,
  program,
  runs,
  type Sample,
  sampleOf,
  storedAt,
  storedIn,
} from '../support/stored-copies.ts'
import { eventually } from '../support/wire.ts'

const sealed = (bytes: number) => `sealed:v1:abc:${Buffer.alloc(bytes, 7).toString('base64url')}`
const many = (count: number, bytes: number) =>
  Array.from({ length: count }, (_, index) => sampleOf(`team-${index}`, 'x'.repeat(bytes)))

describe('storage migrate, faults', { timeout: 400_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'platform-migrate-faults-'))
  let etcd: EtcdCluster
  let client: EtcdClient
  let flags: string
  let count = 0
  before(async () => {
    etcd = await startEtcd()
    client = openEtcdClient({ endpoints: etcd.endpoints })
    flags = `--etcd-endpoints ${etcd.endpoints[0]}`
  })
  after(async () => {
    client.close()
    await etcd.close()
    rmSync(scratch, { recursive: true, force: true })
  })

  const prefix = () => `/p${++count}`
  const data = (samples: readonly Sample[] = many(3, 10)) => createStore(join(scratch, `data${++count}`), samples)
  const empty = (directory: string) => keysOnly(directory, join(scratch, `empty${++count}`))
  const keysAt = async (below: string) => (await client.range({ ...keysBelow(below).all, countOnly: true })).count
  const objectsAt = async (below: string) =>
    (await client.range({ ...keysBelow(below).objects, countOnly: true })).count
  const toEtcd = (directory: string, to: string) =>
    `storage migrate --from sqlite --to etcd --data ${directory} ${flags} --etcd-prefix ${to}`
  const toSqlite = (from: string, directory: string) =>
    `storage migrate --from etcd --to sqlite --data ${directory} ${flags} --etcd-prefix ${from}`
  const fails = async (code: number, words: string, pattern: RegExp) => {
    const output = await platform(words)
    assert.equal(output.code, code, output.stdout + output.stderr)
    assert.match(output.stderr, pattern)
    return output
  }
  const begin = (words: string): ChildProcess =>
    spawn(process.execPath, [program, ...words.split(' ')], { stdio: 'ignore' })
  const killed = async (child: ChildProcess) => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  test('arguments that make no sense are usage errors', async () => {
    const directory = await data()
    await fails(2, `storage migrate --from sqlite --to sqlite --data ${directory}`, /--from and --to must be different/)
    await fails(2, `storage migrate --from sqlite --to mysql --data ${directory}`, /--to/)
    await fails(2, `storage migrate --from sqlite --data ${directory}`, /--to/)
    await fails(2, `storage migrate --from sqlite --to etcd --data ${directory}`, /requires etcd\.endpoints/)
    await fails(2, toEtcd(join(scratch, 'nowhere'), prefix()), /has no platform\.db/)
    await fails(1, toSqlite(prefix(), join(scratch, 'nowhere')), /master\.key is missing/)
    await fails(
      1,
      `storage migrate --from sqlite --to etcd --data ${directory} --etcd-endpoints http://127.0.0.1:1`,
      /no etcd endpoint responds/,
    )
  })

  test('a source or a target that is in use is refused', async t => {
    const server = await startServer({ args: ['--storage', 'etcd', ...flags.split(' '), '--etcd-prefix', '/busy'] })
    t.after(() => server.stop())
    await fails(1, toEtcd(await data(), '/busy'), /replicas use the prefix \/busy of etcd\. Stop all of them/)
    const target = empty(await data())
    await fails(1, toSqlite('/busy', target), /replicas use the prefix \/busy of etcd\. Stop all of them/)
    assert.deepEqual(
      readdirSync(target).filter(name => name.startsWith('platform.db')),
      [],
    )
    const other = await startServer()
    t.after(() => other.stop())
    const free = prefix()
    await fails(1, toEtcd(other.directory, free), /the data directory is in use/)
    assert.equal(await keysAt(free), 0)
  })

  test('a target that is not empty is refused and unchanged', async () => {
    const directory = await data()
    const full = prefix()
    await runs(toEtcd(directory, full))
    const before = await storedAt(etcd.endpoints, full)
    await fails(1, toEtcd(await data(many(5, 5)), full), /already holds an installation/)
    assert.deepEqual(await storedAt(etcd.endpoints, full), before)
    await fails(2, toSqlite(full, directory), /already has a platform\.db/)
    const foreign = prefix()
    const put = { key: Buffer.from(`${foreign}/x`), value: Buffer.from('1'), lease: 0 }
    await client.txn({ compare: [], success: [{ requestPut: put }], failure: [] })
    await fails(1, toEtcd(directory, foreign), /holds 1 keys that are not of this program/)
    await fails(1, toSqlite(foreign, empty(directory)), /holds no installation/)
    assert.equal(await keysAt(foreign), 1)
  })

  test('objects that are too large are all listed first, and nothing is written', async () => {
    const [secrets, versions] = ['sharedsecrets.management.platform.sh', 'secretversions.management.platform.sh']
    const directory = await data([
      sampleOf('fits', 'x'.repeat(1_400_000)),
      sampleOf('too-large', 'x'.repeat(1_500_000)),
      sampleOf('secret-fits', sealed(700_000), secrets),
      sampleOf('secret-too-large', sealed(800_000), secrets),
      sampleOf('version-fits', sealed(800_000), versions),
    ])
    const to = prefix()
    const revision = async () => (await client.range({ key: Buffer.from('x') })).header?.revision
    const before = await revision()
    const { stdout, stderr } = await fails(
      1,
      toEtcd(directory, to),
      /2 objects are too large for etcd: make them smaller/,
    )
    assert.deepEqual(
      stdout
        .trim()
        .split('\n')
        .map(line => line.split(':')[0]),
      ['teams.management.platform.sh too-large', `${secrets} secret-too-large`],
    )
    assert.match(stderr, /Nothing was stored/)
    assert.equal(await revision(), before)
  })

  test('values up to the limit arrive intact', async () => {
    const directory = await data([
      sampleOf('plain', 'x'.repeat(1_400_000)),
      sampleOf('version', sealed(1_400_000), 'secretversions.management.platform.sh'),
      sampleOf('unicode', 'ü€😀'.repeat(1000)),
    ])
    const to = prefix()
    await runs(toEtcd(directory, to))
    assert.deepEqual(await storedAt(etcd.endpoints, to), storedIn(directory))
    const back = empty(directory)
    await runs(toSqlite(to, back))
    assert.deepEqual(storedIn(back), storedIn(directory))
  })

  test('a damaged record in the source ends the migration before anything is written', async () => {
    const directory = await data()
    const database = new DatabaseSync(join(directory, 'platform.db'))
    database.exec("UPDATE log SET sum = sum + 1 WHERE name = 'team-1'")
    database.close()
    const to = prefix()
    await fails(1, toEtcd(directory, to), /platform\.db is damaged: .*team-1 has a wrong checksum/)
    assert.equal(await keysAt(to), 0)
  })

  test('after a kill no server starts on the target in etcd, and the next migration replaces it', async () => {
    const directory = await data(many(5000, 2000))
    const to = prefix()
    const child = begin(toEtcd(directory, to))
    await eventually('some objects are in etcd', async () => (await objectsAt(to)) > 100)
    await killed(child)
    const incomplete = /a migration or restore into the prefix \/p\d+ of etcd did not finish\. Run it again/
    await assert.rejects(openEtcdStore({ endpoints: etcd.endpoints, prefix: to }), incomplete)
    const serve = `serve --data ${empty(directory)} --https off --http 127.0.0.1:0 --storage etcd ${flags}`
    await fails(1, `${serve} --etcd-prefix ${to}`, incomplete)
    await fails(1, toSqlite(to, empty(directory)), incomplete)
    const smaller = await data(many(10, 10))
    await runs(toEtcd(smaller, to))
    assert.deepEqual(await storedAt(etcd.endpoints, to), storedIn(smaller))
  })

  test('after a kill no server starts on the target directory, and the next migration replaces it', async () => {
    const directory = await data(many(3000, 8000))
    const from = prefix()
    await runs(toEtcd(directory, from))
    const target = empty(directory)
    const child = begin(toSqlite(from, target))
    await eventually('the database is begun', async () => existsSync(join(target, 'platform.db.incomplete')))
    await killed(child)
    assert.equal(existsSync(join(target, 'platform.db')), false)
    await fails(
      1,
      `serve --data ${target} --https off --http 127.0.0.1:0`,
      /a restore or migration did not complete .*platform\.db\.incomplete: delete this file, and run it again/,
    )
    await runs(toSqlite(from, target))
    assert.deepEqual(storedIn(target), storedIn(directory))
    assert.equal(existsSync(join(target, 'platform.db.incomplete')), false)
  })

  test('a change in etcd during the migration ends it, and leaves no database behind', async () => {
    const directory = await data(many(2000, 4000))
    const from = prefix()
    await runs(toEtcd(directory, from))
    const store = await openEtcdStore({ endpoints: etcd.endpoints, prefix: from })
    let isOver = false
    const writing = (async () => {
      for (let index = 0; !isOver; index++)
        await store.commit([{ type: 'put', ...opOf(sampleOf('team-1', String(index))) }])
    })()
    try {
      const target = empty(directory)
      await fails(1, toSqlite(from, target), /the data in etcd has changed during the migration: stop all replicas/)
      assert.deepEqual(readdirSync(target).toSorted(), ['master.key'])
    } finally {
      isOver = true
      await writing
      await store.close()
    }
  })

  test('of two migrations to one prefix the later takes over, and the earlier fails', async () => {
    const to = prefix()
    const child = begin(toEtcd(await data(many(5000, 2000)), to))
    const exit = once(child, 'exit')
    await eventually('some objects are in etcd', async () => (await objectsAt(to)) > 100)
    const later = await data(many(10, 10))
    await runs(toEtcd(later, to))
    assert.deepEqual(await exit, [1, null])
    assert.deepEqual(await storedAt(etcd.endpoints, to), storedIn(later))
  })

  test('a member that restarts does not end the migration', async () => {
    const directory = await data(many(4000, 1000))
    const to = prefix()
    const child = begin(toEtcd(directory, to))
    const exit = once(child, 'exit')
    await eventually('some objects are in etcd', async () => (await objectsAt(to)) > 100)
    const [member] = etcd.members
    await member?.kill()
    await member?.start()
    assert.deepEqual(await exit, [0, null])
    assert.deepEqual(await storedAt(etcd.endpoints, to), storedIn(directory))
  })

  test('without space in etcd the migration says so, and deletes what it wrote', async t => {
    const small = await startEtcd({ args: ['--quota-backend-bytes=4000000'] })
    t.after(() => small.close())
    const directory = await data(many(3000, 4000))
    const endpoint = small.endpoints[0] ?? ''
    await fails(
      1,
      `storage migrate --from sqlite --to etcd --data ${directory} --etcd-endpoints ${endpoint}`,
      /etcd has no space left/,
    )
    const own = openEtcdClient({ endpoints: small.endpoints })
    t.after(() => own.close())
    assert.equal((await own.range({ ...keysBelow('/platform').all, countOnly: true })).count, 0)
  })
})
