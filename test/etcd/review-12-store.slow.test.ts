// Large values on slow links, and prefixes that were used before: findings of review 12.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { after, test } from 'node:test'
import { openEtcdClient } from '../../src/storage/etcd/client.ts'
import { keysBelow } from '../../src/storage/etcd/keys.ts'
import { openEtcdStore } from '../../src/storage/etcd/store.ts'
import type { Op } from '../../src/storage/store.ts'
import { startEtcd } from '../support/etcd.ts'
import { slowLink } from '../support/tcp-link.ts'

const etcd = await startEtcd()
after(() => etcd.close())
const { endpoints } = etcd

const put = (name: string, filler = ''): Op => {
  const head = '{"metadata":{"name":"'
  const text = `${head}${name}","resourceVersion":""},"x":"${filler}"}`
  return {
    type: 'put',
    key: { bucket: 'things', namespace: '', name },
    value: { text: Buffer.from(text), gap: text.indexOf('""}', head.length) + 1 },
    expect: 0,
  }
}

test('a prefix whose keys were deleted shows nothing of the earlier installation', async () => {
  const prefix = '/used'
  const first = await openEtcdStore({ endpoints, prefix })
  const revision = await first.commit([put('old')])
  await first.close()
  const client = openEtcdClient({ endpoints })
  await client.txn({ compare: [], success: [{ requestDeleteRange: keysBelow(prefix).all }], failure: [] })
  client.close()
  const second = await openEtcdStore({ endpoints, prefix })
  try {
    let shown: unknown
    try {
      shown = second.list({ bucket: 'things', revision }).entries.map(({ key }) => key.name)
    } catch (error) {
      shown = (error as { reason: string }).reason
    }
    assert.equal(shown, 'compacted')
  } finally {
    await second.close()
  }
})

const gigabit = 125_000

const filler = 'x'.repeat(1_000_000)

async function compact(): Promise<void> {
  const client = openEtcdClient({ endpoints })
  const { header } = await client.range({ key: Buffer.from('x') })
  await client.compact(header?.revision ?? 0)
  client.close()
}

test('a store opens after a compaction, with large values after small ones, on a link of a gigabit per second', async t => {
  const prefix = '/compacted'
  const first = await openEtcdStore({ endpoints, prefix })
  for (let i = 0; i < 2000; i += 100)
    await Promise.all(Array.from({ length: 100 }, (_, j) => first.commit([put(`a-${i + j}`)])))
  for (let i = 0; i < 400; i += 4) await Promise.all([0, 1, 2, 3].map(j => first.commit([put(`b-${i + j}`, filler)])))
  await first.close()
  await compact()
  const link = await slowLink(t, endpoints[0] as string, gigabit)
  const started = performance.now()
  const second = await openEtcdStore({ endpoints: [link], prefix })
  t.diagnostic(`opened after ${Math.round(performance.now() - started)} ms`)
  assert.equal(second.count('things'), 2400)
  await second.close()
})

test('a store opens over a history of large values, on a link of a gigabit per second', async t => {
  const prefix = '/large'
  const first = await openEtcdStore({ endpoints, prefix })
  for (let i = 0; i < 400; i += 4) await Promise.all([0, 1, 2, 3].map(j => first.commit([put(`n-${i + j}`, filler)])))
  await first.close()
  const link = await slowLink(t, endpoints[0] as string, gigabit)
  const started = performance.now()
  const second = await openEtcdStore({ endpoints: [link], prefix })
  t.diagnostic(`opened after ${Math.round(performance.now() - started)} ms`)
  assert.equal(second.count('things'), 400)
  await second.close()
})
