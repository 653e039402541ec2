// Faults of etcd and of replicas while the server runs, and what clients see.

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { startEtcd } from '../support/etcd.ts'
import { etcdArgs, type Replicas, startReplicas } from '../support/replicas.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const ours = '/apis/management.platform.sh/v1'
const teams = `${ours}/teams`
const secrets = `${ours}/namespaces/default/sharedsecrets`

async function open(t: TestContext, options: Parameters<typeof startReplicas>[0]): Promise<Replicas> {
  const replicas = await startReplicas(options)
  t.after(() => replicas.close())
  return replicas
}

let count = 0
const create = (server: Server) =>
  server.request('POST', teams, { body: { metadata: { name: `team-${++count}` } } }).catch(() => undefined)
const isReady = async (server: Server) => (await fetch(`${server.http}/readyz`)).ok
/** Returns the resourceVersion of the write that succeeded. */
async function writes(server: Server): Promise<number> {
  let version: string | undefined
  await eventually('a write succeeds', async () => {
    const { status, body } = (await create(server)) ?? {}
    if (status === 201) version = body.metadata.resourceVersion
    return status === 201
  })
  return Number(version)
}

type Item = { readonly metadata: { readonly resourceVersion: string } }
const upTo = (items: readonly Item[], version: string) =>
  items.filter(({ metadata }) => Number(metadata.resourceVersion) <= Number(version))

async function isLeader(server: Server): Promise<boolean> {
  const headers = { authorization: `Bearer ${server.adminKey}` }
  const text = await (await fetch(`${server.http}/metrics`, { headers })).text()
  return /^platform_leader 1$/m.test(text)
}

describe('members of etcd', () => {
  test('one of three may be killed, paused and restarted: reads and writes continue', async t => {
    const { etcd, servers } = await open(t, { members: 3, replicas: 2 })
    for (const member of etcd.members) {
      await member.kill()
      for (const server of servers) {
        await writes(server)
        assert.equal((await server.request('GET', teams)).status, 200)
      }
      await member.start()
    }
    let written = 0
    for (const member of etcd.members) {
      process.kill(member.pid(), 'SIGSTOP')
      for (const server of servers) written = await writes(server)
      process.kill(member.pid(), 'SIGCONT')
    }
    const [one, two] = servers as [Server, Server]
    const earlier = (await one.request('GET', teams)).body
    const later = (await two.request('GET', teams)).body
    // A write that got 504 may apply between the two reads.
    const { resourceVersion } = earlier.metadata
    assert.ok(Number(resourceVersion) >= written, `read ${resourceVersion} after the write of ${written}`)
    assert.deepEqual(earlier.items, upTo(later.items, resourceVersion))
    assert.ok(earlier.items.length >= 2 * 2 * etcd.members.length, 'every write that succeeded is there')
  })

  test('without a quorum every read is 503, also of any version, and /readyz fails; it recovers without a restart', async t => {
    const { etcd, servers } = await open(t, { members: 3, replicas: 1 })
    const [server] = servers as [Server]
    const [, two, three] = etcd.members
    const old = await server.request('GET', `${teams}?resourceVersion=0`)
    assert.equal(old.status, 200)
    await Promise.all([two?.kill(), three?.kill()])
    await eventually('old versions are refused', async () => {
      const { status, body } = await server.request('GET', `${teams}?resourceVersion=0`)
      if (status === 503) assert.match(body.message, /etcd has not confirmed this replica/)
      return status === 503
    })
    assert.equal((await server.request('GET', teams)).status, 503)
    assert.equal((await server.request('POST', teams, { body: { metadata: { name: 'none' } } })).status, 503)
    assert.equal(await isReady(server), false)
    await two?.start()
    await writes(server)
    assert.equal((await server.request('GET', `${teams}?resourceVersion=0`)).status, 200)
    await eventually('it is ready', () => isReady(server))
  })

  test('without space, writes are 503 with the reason and reads work; it recovers without a restart', async t => {
    const etcd = await startEtcd({ args: ['--quota-backend-bytes=8000000'] })
    t.after(() => etcd.close())
    const server = await startServer({ args: etcdArgs(etcd) })
    t.after(() => server.kill())
    const body = { spec: { data: { a: Buffer.alloc(300_000, 7).toString('base64') } } }
    let refused: { status: number; body: { message: string } } | undefined
    for (let i = 0; i < 100 && !refused; i++) {
      const answer = await server.request('POST', secrets, { body: { metadata: { name: `big-${i}` }, ...body } })
      if (answer.status !== 201) refused = answer
    }
    assert.equal(refused?.status, 503)
    assert.match(refused?.body.message ?? '', /no space left|NOSPACE/)
    assert.equal((await server.request('GET', secrets)).status, 200)
    assert.ok(await isReady(server), 'reads work')
    const [endpoint = ''] = etcd.endpoints
    // Deletes still work, so that people can make space.
    const { body: list } = await server.request('GET', secrets)
    for (const { metadata } of list.items)
      assert.equal((await server.request('DELETE', `${secrets}/${metadata.name}`)).status, 200)
    const { header } = await call(endpoint, '/v3/kv/range', { key: btoa('x') })
    await call(endpoint, '/v3/kv/compaction', { revision: header.revision })
    await call(endpoint, '/v3/maintenance/defragment', {})
    const { alarms } = await call(endpoint, '/v3/maintenance/alarm', { action: 'GET' })
    for (const { memberID, alarm } of alarms)
      await call(endpoint, '/v3/maintenance/alarm', { action: 'DEACTIVATE', memberID, alarm })
    await writes(server)
  })

  test('after a restore of an older backup, replicas that still run stop serving and say what to do', async t => {
    const { etcd, servers } = await open(t, { replicas: 1 })
    const [server] = servers as [Server]
    const [member] = etcd.members
    const backup = mkdtempSync(join(tmpdir(), 'platform-etcd-backup-'))
    t.after(() => rmSync(backup, { recursive: true, force: true }))
    await member?.kill()
    cpSync(member?.directory ?? '', backup, { recursive: true })
    await member?.start()
    await writes(server)
    await writes(server)
    await member?.kill()
    rmSync(member?.directory ?? '', { recursive: true })
    cpSync(backup, member?.directory ?? '', { recursive: true })
    await member?.start()
    await eventually('it stops serving', async () => {
      const { status, body } = await server.request('GET', teams)
      return status === 503 && /etcd went back from revision \d+ to \d+.*--bump-revision/.test(body.message)
    })
    assert.equal((await server.request('GET', `${teams}?resourceVersion=0`)).status, 503)
    assert.equal((await create(server))?.status, 503)
    assert.equal(await isReady(server), false)
  })
})

describe('compacted history', () => {
  const compact = async (endpoint: string) => {
    const { header } = await call(endpoint, '/v3/kv/range', { key: btoa('x') })
    await call(endpoint, '/v3/kv/compaction', { revision: header.revision, physical: true })
  }
  const firstOf = async (server: Server, version: string) => {
    for await (const event of server.watch(`${teams}?watch=1&resourceVersion=${version}`)) return event
    return undefined
  }

  test('a replica that starts afterwards answers 410 for older versions, and follows from newer ones', async t => {
    const { etcd, servers, add } = await open(t, { replicas: 1 })
    const [server] = servers as [Server]
    const { body: before } = await server.request('GET', teams)
    for (const _ of [1, 2, 3]) await writes(server)
    const { body: list } = await server.request('GET', teams)
    await compact(etcd.endpoints[0] as string)
    const later = await add()
    assert.deepEqual((await later.request('GET', teams)).body.items, list.items)
    const old = await firstOf(later, before.metadata.resourceVersion)
    assert.deepEqual([old?.type, old?.object.code, old?.object.reason], ['ERROR', 410, 'Expired'])
    const next = firstOf(later, list.metadata.resourceVersion)
    await writes(server)
    assert.equal((await next)?.type, 'ADDED')
  })

  test('a replica that was cut off for longer than the history ends, and accepts nothing that was revoked meanwhile', async t => {
    const { etcd, servers } = await open(t, { replicas: 2 })
    const [one, two] = servers as [Server, Server]
    const [member] = etcd.members
    const keys = `${ours}/ownedaccesskeys`
    const { body } = await one.request('POST', keys, { body: { metadata: { name: 'dave' }, spec: { user: 'dave' } } })
    const { key } = body.spec
    assert.equal((await two.request('GET', teams, { key })).status, 200)
    two.signal('SIGSTOP')
    await member?.kill()
    await member?.start()
    await writes(one)
    assert.equal((await one.request('DELETE', `${keys}/dave`)).status, 200)
    await writes(one)
    await compact(member?.endpoint ?? '')
    two.signal('SIGCONT')
    const ended = two.died()
    let isOver = false
    void ended.then(() => {
      isOver = true
    })
    while (!isOver) {
      const answer = await two.request('GET', teams, { key }).catch(() => undefined)
      if (answer) assert.notEqual(answer.status, 200)
    }
    assert.match(two.output(), /cut off from etcd for longer than its history, so it ends\. Start it again/)
    await two.crash({})
    assert.deepEqual((await two.request('GET', teams)).body.items, (await one.request('GET', teams)).body.items)
    assert.equal((await two.request('GET', teams, { key })).status, 401)
  })
})

describe('the leader', () => {
  test('another replica takes over after a kill and after a clean stop, and there is one at a time', async t => {
    const { servers, add } = await open(t, { replicas: 2 })
    const leading = async (among: readonly Server[]) => {
      const found: Server[] = []
      await eventually('one leads', async () => {
        const which = await Promise.all(among.map(isLeader))
        found.splice(0, 2, ...among.filter((_, index) => which[index]))
        return found.length === 1
      })
      return found[0] as Server
    }
    const first = await leading(servers)
    await first.die()
    const rest = servers.filter(server => server !== first)
    const second = await leading(rest)
    const third = await add()
    assert.equal(await isLeader(third), false)
    await second.restart(async () => assert.equal(await leading([third]), third))
    // Its controllers run: they set conditions.
    await third.request('POST', teams, { body: { metadata: { name: 'checked' } } })
    await eventually('the team has conditions', async () => {
      const { body } = await third.request('GET', `${teams}/checked`)
      return body.status?.conditions?.length > 0
    })
  })
})

describe('sizes', () => {
  test('the largest secret is stored and updated, with its history', async t => {
    const { servers } = await open(t, { replicas: 1 })
    const [server] = servers as [Server]
    const data = (fill: number) => ({ a: Buffer.alloc(512 * 1024, fill).toString('base64') })
    const made = await server.request('POST', secrets, {
      body: { metadata: { name: 'large' }, spec: { data: data(1) } },
    })
    assert.equal(made.status, 201, made.text.slice(0, 500))
    for (const fill of [2, 3]) {
      const { status, text } = await server.request('PATCH', `${secrets}/large`, {
        body: { spec: { data: data(fill) } },
        headers: { 'content-type': 'application/merge-patch+json' },
      })
      assert.equal(status, 200, text.slice(0, 500))
    }
    const { body } = await server.request('GET', `${secrets}/large`)
    assert.deepEqual(body.spec.data, data(3))
  })
})

// biome-ignore lint/suspicious/noExplicitAny: the answers of etcd's JSON gateway
async function call(endpoint: string, path: string, body: object): Promise<any> {
  const response = await fetch(`${endpoint}${path}`, { method: 'POST', body: JSON.stringify(body) })
  assert.ok(response.ok, `${path}: ${response.status}`)
  return response.json()
}
