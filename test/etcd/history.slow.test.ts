// A replica that starts reads the history of etcd in parts. It has the same state and the same events as the one that wrote them.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { after, type TestContext, test } from 'node:test'
import { openEtcdClient } from '../../src/storage/etcd/client.ts'
import { type EtcdStore, openEtcdStore } from '../../src/storage/etcd/store.ts'
import type { HistoryBounds } from '../../src/storage/event-log.ts'
import type { Key, Op } from '../../src/storage/store.ts'
import { diceOf } from '../prove/seeded-random.ts'
import { startEtcd } from '../support/etcd.ts'
import { slowLink } from '../support/tcp-link.ts'

const etcd = await startEtcd()
const { endpoints } = etcd
const client = openEtcdClient({ endpoints })
after(async () => {
  client.close()
  await etcd.close()
})

async function open(
  t: TestContext,
  prefix: string,
  history?: HistoryBounds,
  at: readonly string[] = endpoints,
): Promise<EtcdStore> {
  const store = await openEtcdStore({ endpoints: at, prefix, history })
  t.after(() => store.close())
  return store
}

const buckets = ['ants', 'bees', 'cats', 'dogs', 'emus']

function put(key: Key, filler: string, expect: number): Op {
  const head = `{"metadata":{"name":"${key.name}","resourceVersion":"`
  const text = `${head}"},"x":"${filler}"}`
  return { type: 'put', key, value: { text: Buffer.from(text), gap: head.length }, expect }
}

/** Creates, changes and deletes random objects, at times five in one commit. */
async function change(store: EtcdStore, commits: number, seed: number): Promise<void> {
  const roll = diceOf(`history/${seed}`)
  const lane = async (number: number) => {
    for (let count = 0; count < commits / 10; count++) {
      const name = `object-${number}-${roll(40)}`
      const changed = roll(5) === 0 ? buckets : [buckets[roll(5)]!]
      await store.commit(
        changed.map(bucket => {
          const key = { bucket, namespace: '', name }
          const revision = store.get(key)?.revision ?? 0
          return revision && roll(10) < 3
            ? { type: 'delete', key, expect: revision }
            : put(key, 'x'.repeat(roll(100) === 0 ? 200_000 : 100), revision)
        }),
      )
    }
  }
  await Promise.all(Array.from({ length: 10 }, (_, number) => lane(number)))
}

/** Revisions of another program. */
async function writeElsewhere(revisions: number): Promise<void> {
  const lane = async () => {
    for (let count = 0; count < revisions / 50; count++)
      await client.txn({
        compare: [],
        success: [{ requestPut: { key: Buffer.from('/elsewhere'), value: Buffer.from('x'), lease: 0 } }],
        failure: [],
      })
  }
  await Promise.all(Array.from({ length: 50 }, lane))
}

const stateOf = (store: EtcdStore) =>
  buckets.flatMap(bucket =>
    store.list({ bucket }).entries.map(({ key, revision, text }) => `${key.name} ${revision} ${text}`),
  )

function eventsOf(store: EtcdStore, revision: number): readonly string[] {
  return buckets.flatMap(bucket => {
    const cursor = store.watch(bucket, revision)
    const events = cursor.take(1_000_000)
    cursor.close()
    return events.map(
      event => `${event.type} ${event.revision} ${event.key.name} ${event.entry.text} ${event.previous?.text}`,
    )
  })
}

/** A second store at the same prefix has the state and the events of the first one, from a revision on. */
async function expectSame(first: EtcdStore, second: EtcdStore, from: number): Promise<void> {
  await second.confirm()
  assert.deepEqual(stateOf(second), stateOf(first))
  assert.deepEqual(eventsOf(second, from), eventsOf(first, from))
}

test('all events of a long history, with revisions of another program between them and after them', async t => {
  const prefix = '/long'
  const first = await open(t, prefix)
  const start = first.revision
  await change(first, 1500, 1)
  await writeElsewhere(3000)
  await change(first, 1500, 2)
  await writeElsewhere(3000)
  const second = await open(t, prefix)
  await expectSame(first, second, start)
  const before = second.revision
  await change(first, 100, 3)
  await expectSame(first, second, before)
})

test('a history on a link that is too slow for several watches at once', { timeout: 60_000 }, async t => {
  const prefix = '/slow'
  const first = await open(t, prefix)
  const start = first.revision
  const commits = Array.from({ length: 9000 }, (_, index) => () => {
    const key = { bucket: 'ants', namespace: '', name: `object-${index}` }
    return first.commit([put(key, 'x'.repeat(1000), 0)])
  })
  for (let at = 0; at < commits.length; at += 100)
    await Promise.all(commits.slice(at, at + 100).map(commit => commit()))
  const second = await open(t, prefix, undefined, [await slowLink(t, endpoints[0] as string, 1500)])
  await expectSame(first, second, start)
})

test('a store with more history than it reads at the start begins with a snapshot', async t => {
  const prefix = '/bounded'
  const first = await open(t, prefix)
  const start = first.revision
  await change(first, 1500, 4)
  const second = await open(t, prefix, { minEvents: 100 })
  await expectSame(first, second, first.revision - 400)
  assert.throws(() => second.watch('ants', start), { reason: 'compacted' })
})

for (const [name, back] of [
  ['before', 700],
  ['after', 200],
] as const)
  test(`a history that was compacted ${name} its bound`, async t => {
    const prefix = `/compacted-${name}`
    const first = await open(t, prefix)
    const start = first.revision
    await change(first, 1500, 5)
    await client.compact(first.revision - back)
    const second = await open(t, prefix, { minEvents: 100 })
    await expectSame(first, second, first.revision - 100)
    assert.throws(() => second.watch('ants', start), { reason: 'compacted' })
  })
