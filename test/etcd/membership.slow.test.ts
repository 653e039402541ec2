// Replicas know each other: how many run, and one context for each in admin.kubeconfig.

import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { type Replicas, startReplicas } from '../support/replicas.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

type Named = { readonly name: string; readonly [field: string]: { readonly [field: string]: string } | string }
type Config = {
  readonly clusters: readonly Named[]
  readonly contexts: readonly Named[]
  readonly users: readonly Named[]
  readonly 'current-context': string
}

const nameOf = (server: Server) => `platform-127.0.0.1-${new URL(server.https).port}`

async function runningAt(server: Server): Promise<number> {
  const headers = { authorization: `Bearer ${server.adminKey}` }
  const text = await (await fetch(`${server.http}/metrics`, { headers })).text()
  return Number(/^platform_replicas (\d+)$/m.exec(text)?.[1])
}

describe('membership', () => {
  let replicas: Replicas
  let [one, two, three]: Server[] = []
  before(async () => {
    replicas = await startReplicas({ replicas: 3 })
    ;[one, two, three] = replicas.servers as [Server, Server, Server]
  })
  after(() => replicas.close())

  const read = () => parse(readFileSync(one!.kubeconfig, 'utf8')) as Config
  const contexts = () => read().contexts.map(({ name }) => name)
  const shows = (...others: readonly Server[]) =>
    eventually(`the contexts of ${others.length} others`, async () => {
      const expected = ['platform', ...others.map(nameOf).toSorted()]
      return JSON.stringify(contexts().toSorted()) === JSON.stringify(expected.toSorted())
    })

  test('every replica counts all that run', async () => {
    for (const server of [one!, two!, three!])
      await eventually('three replicas', async () => (await runningAt(server)) === 3)
  })

  test('admin.kubeconfig has a context for each replica, and its own is the current one', async () => {
    await shows(two!, three!)
    const { clusters, contexts: all, users, 'current-context': current } = read()
    assert.equal(current, 'platform')
    assert.deepEqual(
      users.map(({ name }) => name),
      ['admin'],
    )
    for (const server of [one!, two!, three!]) {
      const name = server === one ? 'platform' : nameOf(server)
      assert.deepEqual(all.find(context => context.name === name)?.['context'], { cluster: name, user: 'admin' })
      const cluster = clusters.find(each => each.name === name)?.['cluster'] as { [field: string]: string }
      assert.equal(cluster['server'], `${server.https}/kubernetes/management`)
      assert.equal(Buffer.from(cluster['certificate-authority-data'] ?? '', 'base64').toString(), server.ca)
    }
  })

  test('a killed replica disappears, and comes back with the same context; other entries stay', async () => {
    const config = read()
    const own = { name: 'mine', context: { cluster: 'platform', user: 'admin', namespace: 'web' } }
    const current = nameOf(two!)
    writeFileSync(
      one!.kubeconfig,
      stringify({ ...config, contexts: [...config.contexts, own], 'current-context': current }),
    )
    await three!.die()
    await eventually('the context is gone', async () => !contexts().includes(nameOf(three!)))
    assert.deepEqual(
      read().contexts.find(({ name }) => name === 'mine'),
      own,
    )
    assert.equal(read()['current-context'], current)
    assert.equal(await runningAt(one!), 2)
    await three!.crash({})
    await eventually('the context is back', async () => contexts().includes(nameOf(three!)))
    await two!.restart(() => eventually('it falls back', async () => read()['current-context'] === 'platform'))
  })

  test('a restart of the replica with the file keeps the contexts right', async () => {
    await one!.restart()
    await eventually('both others', async () => [two!, three!].every(server => contexts().includes(nameOf(server))))
    await three!.restart(() => eventually('it is gone', async () => !contexts().includes(nameOf(three!))))
  })

  test('a copy of a data directory is refused, with what to do', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'platform-copy-'))
    for (const file of ['master.key', 'replica.id']) copyFileSync(join(two!.directory, file), join(directory, file))
    await assert.rejects(
      startServer({ args: replicas.args, directory }),
      /has the same id as this one \([0-9a-f]{16}\): if this data directory is a copy, delete replica\.id/,
    )
  })

  test('replica.url is the address for the others', async () => {
    const { port } = new URL(two!.https)
    await two!.stop()
    const again = await startServer({
      args: [...replicas.args, '--replica-url', `https://localhost:${port}`, '--https', `127.0.0.1:${port}`],
      replicaOf: one!,
    })
    try {
      await eventually('it has that name', async () => contexts().includes(`platform-localhost-${port}`))
    } finally {
      await again.kill()
    }
  })
})
