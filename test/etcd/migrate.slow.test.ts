// `platform storage migrate` between SQLite and etcd: what clients see before and after, in both directions.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type EtcdCluster, startEtcd } from '../support/etcd.ts'
import { type Server, startServer } from '../support/server.ts'
import { copyOf, fillServer, keysOnly, platform, runs, storedAt, storedIn } from '../support/stored-copies.ts'

const ours = '/apis/management.platform.sh/v1'
const teams = `${ours}/teams`
const secrets = `${ours}/namespaces/default/sharedsecrets`
const merge = { 'content-type': 'application/merge-patch+json' }

describe('storage migrate', { timeout: 240_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'platform-migrate-'))
  let etcd: EtcdCluster
  let flags: string
  before(async () => {
    etcd = await startEtcd()
    flags = etcd.endpoints.map(endpoint => `--etcd-endpoints ${endpoint}`).join(' ')
  })
  after(async () => {
    await etcd.close()
    rmSync(scratch, { recursive: true, force: true })
  })
  const versionOf = async (server: Server) => Number((await server.request('GET', teams)).body.metadata.resourceVersion)
  const lastUse = async (server: Server) =>
    (await server.request('GET', `${ours}/ownedaccesskeys/used`)).body.status.lastActivity as string
  const historyOf = async (server: Server) => {
    const list = (await server.request('GET', `${secrets}/versioned/history`)).body.status.versions
    const first = (await server.request('GET', `${secrets}/versioned/history/1`)).body.spec.data
    return { list, first }
  }
  const onEtcd = (directory: string, prefix: string) =>
    startServer({ directory, args: ['--storage', 'etcd', ...flags.split(' '), '--etcd-prefix', prefix] })

  test('moves everything to etcd and back, and resourceVersions only grow', async t => {
    const old = await startServer()
    t.after(() => old.stop())
    await fillServer(old)
    const data = await copyOf(old, join(scratch, 'data'))
    const [listed, used, history] = [(await old.request('GET', teams)).body, await lastUse(old), await historyOf(old)]
    const last = await versionOf(old)
    const before = storedIn(data)
    assert.ok(used && history.list.length === 3 && before.length > 20)

    writeFileSync(join(scratch, 'other.key'), `abc ${Buffer.alloc(32, 7).toString('base64')}\n`)
    const other = await platform(
      `storage migrate --from sqlite --to etcd --data ${data} ${flags} --master-key ${join(scratch, 'other.key')}`,
    )
    assert.equal(other.code, 1)
    assert.match(other.stderr, /the key ring .*other\.key does not have the key "\w+" of \d+ values/)

    const migrated = await runs(`storage migrate --from sqlite --to etcd --data ${data} ${flags}`)
    assert.match(migrated.stderr, /copied and verified \d+ objects of revision \d+ in the prefix \/platform of etcd/)
    assert.match(migrated.stderr, new RegExp(`every replica needs the key ring ${data}/master\\.key`))
    assert.deepEqual(await storedAt(etcd.endpoints, '/platform'), before)
    assert.deepEqual(storedIn(data), before, 'the source has changed')

    const replica = await onEtcd(data, '/platform')
    t.after(() => replica.kill())
    assert.equal(replica.ca, old.ca)
    const { body: list } = await replica.request('GET', teams)
    assert.deepEqual(list.items.map(withoutVersion), listed.items.map(withoutVersion))
    for (const { metadata } of list.items) assert.ok(Number(metadata.resourceVersion) > last)
    assert.deepEqual([await lastUse(replica), await historyOf(replica)], [used, history])
    for (const version of [last - 5, last]) {
      const { text } = await replica.request('GET', `${teams}?watch=1&timeoutSeconds=5&resourceVersion=${version}`)
      assert.match(text, /"code":410/)
    }
    // The object has not changed, but its version has: clients read again and retry.
    const [team] = listed.items
    const stale = await replica.request('PUT', `${teams}/${team.metadata.name}`, { body: team })
    assert.equal(stale.status, 409)
    const fresh = { ...team, metadata: list.items[0].metadata, spec: { ...team.spec, displayName: 'after' } }
    assert.equal((await replica.request('PUT', `${teams}/${team.metadata.name}`, { body: fresh })).status, 200)

    const keys = keysOnly(data, join(scratch, 'back'))
    const another = await startServer({
      replicaOf: replica,
      args: ['--storage', 'etcd', ...flags.split(' ')],
    })
    assert.equal(another.ca, old.ca)
    await another.stop()
    const [shown, high] = [(await replica.request('GET', teams)).body.items, await versionOf(replica)]
    await replica.stop()
    const onBoth = await storedAt(etcd.endpoints, '/platform')
    await runs(`storage migrate --from etcd --to sqlite --data ${keys} ${flags}`)
    assert.deepEqual(storedIn(keys), onBoth)
    assert.equal((await runs(`verify ${keys}`)).code, 0)
    assert.equal(readFileSync(join(keys, 'ca.crt'), 'utf8'), old.ca)

    const back = await startServer({ directory: keys })
    t.after(() => back.stop())
    assert.deepEqual((await back.request('GET', teams)).body.items, shown, 'versions change only on the way to etcd')
    assert.ok((await versionOf(back)) >= high)
    assert.deepEqual([await lastUse(back), await historyOf(back)], [used, history])
    const { text } = await back.request('GET', `${teams}?watch=1&timeoutSeconds=5&resourceVersion=${last}`)
    assert.match(text, /"code":410/)
    const { body: changed } = await back.request('PATCH', `${teams}/${team.metadata.name}`, {
      body: '{"spec":{"displayName":"back"}}',
      headers: merge,
    })
    assert.ok(Number(changed.metadata.resourceVersion) > high)
  })

  test('the offset is 0 if the revision of etcd is higher than the one of SQLite', async t => {
    const server = await startServer()
    t.after(() => server.stop())
    const data = await copyOf(server, join(scratch, 'small'))
    const last = await versionOf(server)
    const { stderr } = await runs(
      `storage migrate --from sqlite --to etcd --data ${data} ${flags} --etcd-prefix /second`,
    )
    assert.match(stderr, /revisions of etcd plus 0\n/)
    const replica = await onEtcd(data, '/second')
    t.after(() => replica.kill())
    assert.ok((await versionOf(replica)) > last)
  })
})

function withoutVersion(object: { metadata: { resourceVersion?: string } }) {
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
