// `platform backup` and `platform restore` on etcd: the archive is the same as the one of SQLite, and restores to either.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type EtcdClient, openEtcdClient } from '../../src/storage/etcd/client.ts'
import { keysBelow } from '../../src/storage/etcd/keys.ts'
import { openEtcdStore } from '../../src/storage/etcd/store.ts'
import { type EtcdCluster, startEtcd } from '../support/etcd.ts'
import { type Server, startServer } from '../support/server.ts'
import {
  createStore,
  fillServer,
  keysOnly,
  platform,
  program,
  putSecret,
  runs,
  sampleOf,
  storedAt,
  storedIn,
} from '../support/stored-copies.ts'
import { eventually } from '../support/wire.ts'

const ours = '/apis/management.platform.sh/v1'
const teams = `${ours}/teams`
const secrets = `${ours}/namespaces/default/sharedsecrets`

describe('backup and restore on etcd', { timeout: 400_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'platform-etcd-backup-'))
  let etcd: EtcdCluster
  let client: EtcdClient
  let server: Server
  let keys: string
  let flags: string
  let count = 0
  before(async () => {
    etcd = await startEtcd()
    client = openEtcdClient({ endpoints: etcd.endpoints })
    flags = `--storage etcd --etcd-endpoints ${etcd.endpoints[0]}`
    server = await startServer({ args: flags.split(' ') })
    keys = keysOnly(server.directory, join(scratch, 'keys'))
    await fillServer(server)
  })
  after(async () => {
    await server.stop()
    client.close()
    await etcd.close()
    rmSync(scratch, { recursive: true, force: true })
  })

  const fresh = () => `p${++count}`
  /** Restores to a new data directory, in which a server then starts with the same administrator. */
  const restoreTo = async (name: string, file: string) => {
    const directory = join(scratch, name)
    await runs(`restore ${file} --data ${directory} --master-key ${join(keys, 'master.key')}`)
    for (const one of ['master.key', 'admin.key']) cpSync(join(keys, one), join(directory, one))
    return directory
  }
  const keysAt = async (prefix: string) => (await client.range({ ...keysBelow(prefix).all, countOnly: true })).count
  const backup = async (name: string, more = flags) => {
    const file = join(scratch, `${name}.backup`)
    await runs(`backup ${file} --data ${keys} ${more}`)
    return file
  }
  const restore = (file: string, prefix: string) => `restore ${file} --data ${keys} ${flags} --etcd-prefix ${prefix}`
  const fails = async (code: number, words: string, pattern: RegExp) => {
    const output = await platform(words)
    assert.equal(output.code, code, output.stdout + output.stderr)
    assert.match(output.stderr, pattern)
    return output
  }
  const shown = async (of: Server) => {
    const { body } = await of.request('GET', teams)
    const first = (await of.request('GET', `${secrets}/versioned/history/1`)).body.spec.data
    const used = (await of.request('GET', `${ours}/ownedaccesskeys/used`)).body.status.lastActivity
    return { items: body.items, version: Number(body.metadata.resourceVersion), first, used }
  }
  /** The keys of a backup are used every ten seconds on etcd. */
  const settled = () =>
    eventually('the use of the key is stored', async () => {
      const { count: times } = await client.range({ ...keysBelow('/platform').times, countOnly: true })
      return times >= 2
    })

  test('a backup of etcd restores to SQLite and to another prefix, far above all versions that clients saw', async t => {
    await settled()
    const file = await backup('whole')
    const before = await shown(server)
    await runs(`verify ${file} --data ${keys}`)
    const to = await restoreTo('sqlite', file)
    await runs(`verify ${to}`)
    const prefix = `/${fresh()}`
    const { stderr } = await runs(restore(file, prefix))
    assert.match(stderr, new RegExp(`restored \\d+ objects of revision \\d+ to the prefix ${prefix} of etcd`))
    assert.deepEqual(await storedAt(etcd.endpoints, prefix), storedIn(to))

    const onEtcd = await startServer({
      directory: keysOnly(keys, join(scratch, 'replica')),
      args: [...flags.split(' '), '--etcd-prefix', prefix],
    })
    t.after(() => onEtcd.stop())
    const onSqlite = await startServer({ directory: to })
    t.after(() => onSqlite.stop())
    for (const one of [onEtcd, onSqlite]) {
      assert.equal(one.ca, server.ca)
      const found = await shown(one)
      assert.deepEqual(found.items.map(withoutVersion), before.items.map(withoutVersion))
      assert.deepEqual([found.first, found.used], [before.first, before.used])
      assert.ok(found.version > before.version + 1_000_000_000 - 1000)
      const { text } = await one.request(
        'GET',
        `${teams}?watch=1&timeoutSeconds=5&resourceVersion=${before.version + 5}`,
      )
      assert.match(text, /"code":410/)
    }
  })

  test('a backup of SQLite restores to etcd, and one of that back to SQLite', async t => {
    const old = await startServer()
    t.after(() => old.stop())
    await fillServer(old)
    const ring = `--master-key ${join(old.directory, 'master.key')}`
    const file = join(scratch, 'sqlite.backup')
    await runs(`backup ${file} --data ${old.directory}`)
    const prefix = `/${fresh()}`
    await runs(`${restore(file, prefix)} ${ring}`)
    const stored = storedIn(old.directory)
    assert.deepEqual(await storedAt(etcd.endpoints, prefix), stored)
    const again = join(scratch, 'again.backup')
    await runs(`backup ${again} --data ${keys} ${flags} --etcd-prefix ${prefix} ${ring}`)
    const back = join(scratch, 'back-again')
    await runs(`restore ${again} --data ${back} ${ring}`)
    assert.deepEqual(storedIn(back), stored)
    assert.equal(readFileSync(join(back, 'ca.crt'), 'utf8'), old.ca)
  })

  test('a backup contains one revision, despite concurrent writes', async () => {
    for (const name of ['one', 'two']) await server.request('POST', teams, { body: { metadata: { name } } })
    const write = async (value: number) => {
      for (const name of ['one', 'two'])
        await server.request('PATCH', `${teams}/${name}`, {
          body: `{"spec":{"displayName":"${value}"}}`,
          headers: { 'content-type': 'application/merge-patch+json' },
        })
    }
    // Larger than a page of etcd, so that a backup needs several requests.
    for (let index = 0; index < 20; index++) await putSecret(server, `page-${index}`, { value: 'x'.repeat(500_000) })
    await write(0)
    let isOver = false
    const writing = (async () => {
      for (let value = 1; !isOver; value++) await write(value)
    })()
    const files: string[] = []
    try {
      for (const name of ['a', 'b', 'c']) files.push(await backup(name))
    } finally {
      isOver = true
      await writing
    }
    for (const [index, file] of files.entries()) {
      const to = await restoreTo(`meanwhile-${index}`, file)
      const values = ['one', 'two'].map(name => {
        const text = storedIn(to).find(one => one.startsWith('teams.') && one.includes(`"name":"${name}"`)) ?? ''
        return Number(/"displayName":"(\d+)"/.exec(text)?.[1])
      })
      const ahead = (values[0] as number) - (values[1] as number)
      assert.ok(ahead === 0 || ahead === 1, `one is written before two: ${values.join(', ')}`)
    }
  })

  test('a prefix that is in use or not empty is refused and unchanged', async () => {
    const file = await backup('refused')
    await fails(1, `restore ${file} --data ${keys} ${flags}`, /replicas use the prefix \/platform of etcd/)
    const prefix = `/${fresh()}`
    await runs(restore(file, prefix))
    const before = await storedAt(etcd.endpoints, prefix)
    await fails(1, restore(file, prefix), /already holds an installation/)
    assert.deepEqual(await storedAt(etcd.endpoints, prefix), before)
    await fails(
      1,
      `backup ${join(scratch, 'none')} --data ${keys} ${flags} --etcd-prefix /none`,
      /holds no installation/,
    )
  })

  test('a backup that was changed or truncated, or has another key ring, is rejected and leaves nothing behind', async () => {
    const whole = readFileSync(await backup('spoiled'))
    const changed = Buffer.from(whole)
    changed[whole.length - 1] = (changed[whole.length - 1] as number) ^ 1
    const prefix = `/${fresh()}`
    const file = join(scratch, 'damaged')
    for (const bytes of [whole.subarray(0, -10), changed, Buffer.from('hello\n')]) {
      writeFileSync(file, bytes)
      await fails(1, restore(file, prefix), /truncated|not a backup/)
      assert.equal(await keysAt(prefix), 0)
    }
    writeFileSync(join(scratch, 'other.key'), `abc ${Buffer.alloc(32, 7).toString('base64')}\n`)
    writeFileSync(file, whole)
    const other = `--master-key ${join(scratch, 'other.key')}`
    await fails(
      1,
      `${restore(file, prefix)} ${other}`,
      /is encrypted with the key [0-9a-f]+, which is not in the key ring/,
    )
    assert.equal(await keysAt(prefix), 0)
    await fails(1, `backup ${join(scratch, 'sealed')} --data ${keys} ${flags} ${other}`, /master key .* is not the one/)
  })

  test('after a kill no server starts on the prefix, and the next restore replaces it', async () => {
    const whole = readFileSync(await backup('killed'))
    const prefix = `/${fresh()}`
    const child = spawn(process.execPath, [program, ...restore('-', prefix).split(' ')], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    // The kill closes the pipe.
    child.stdin.on('error', () => {})
    child.stdin.write(whole.subarray(0, whole.length - 1000))
    await eventually('some objects are in etcd', async () => (await keysAt(prefix)) > 10)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await assert.rejects(
      openEtcdStore({ endpoints: etcd.endpoints, prefix }),
      /a migration or restore into the prefix \/p\d+ of etcd did not finish/,
    )
    await runs(restore(join(scratch, 'killed.backup'), prefix))
    const to = await restoreTo('after-kill', join(scratch, 'killed.backup'))
    assert.deepEqual(await storedAt(etcd.endpoints, prefix), storedIn(to))
  })

  test('verify checks every object in etcd, and names a damaged one', async () => {
    const words = `verify --data ${keys} ${flags}`
    assert.match((await runs(words)).stderr, /ok: \d+ objects of revision \d+ in the prefix \/platform of etcd/)
    const prefix = `/${fresh()}`
    await runs(restore(await backup('verified'), prefix))
    const { kvs } = await client.range({ ...keysBelow(prefix).objects })
    const large = kvs.find(({ key }) => key.toString().endsWith('/large'))
    assert.ok(large)
    const value = Buffer.from(large.value)
    value[value.length >> 1] = (value[value.length >> 1] as number) ^ 1
    const change = { requestPut: { key: large.key, value, lease: 0 } }
    await client.txn({ compare: [], success: [change], failure: [] })
    const { stdout } = await fails(1, `${words} --etcd-prefix ${prefix}`, /1 problem in the prefix/)
    assert.match(stdout, /default\/large.*cannot be decrypted/)
  })

  test('objects that are too large are listed, and nothing stays in etcd', async () => {
    const directory = await createStore(join(scratch, 'large'), [
      sampleOf('small', 'x'),
      sampleOf('large', 'x'.repeat(1_500_000)),
      sampleOf('larger', 'x'.repeat(1_600_000)),
    ])
    const file = join(scratch, 'large.backup')
    await runs(`backup ${file} --data ${directory}`)
    const prefix = `/${fresh()}`
    const ring = `--master-key ${join(directory, 'master.key')}`
    const { stdout } = await fails(1, `${restore(file, prefix)} ${ring}`, /2 objects are too large for etcd/)
    assert.match(
      stdout,
      /^teams\.management\.platform\.sh large: \d+ bytes.*\nteams\.management\.platform\.sh larger: /,
    )
    assert.equal(await keysAt(prefix), 0)
  })
})

function withoutVersion(object: { metadata: { resourceVersion?: string } }) {
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
