// A replica that survives the end of its installation: a finding of review 12.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { after, test } from 'node:test'
import { openEtcdClient } from '../../src/storage/etcd/client.ts'
import { keysBelow } from '../../src/storage/etcd/keys.ts'
import { openEtcdStore } from '../../src/storage/etcd/store.ts'
import type { Op } from '../../src/storage/store.ts'
import { startEtcd } from '../support/etcd.ts'

const etcd = await startEtcd()
after(() => etcd.close())
const { endpoints } = etcd

const put = (name: string): Op => {
  const text = `{"metadata":{"name":"${name}","resourceVersion":""}}`
  return {
    type: 'put',
    key: { bucket: 'things', namespace: '', name },
    value: { text: Buffer.from(text), gap: text.length - 3 },
    expect: 0,
  }
}

test('a replica stops serving when its prefix holds another installation', async t => {
  const prefix = '/q'
  const early = await openEtcdStore({ endpoints, prefix })
  t.after(() => early.close())
  await early.commit([put('a')])
  const client = openEtcdClient({ endpoints })
  await client.txn({ compare: [], success: [{ requestDeleteRange: keysBelow(prefix).all }], failure: [] })
  client.close()
  const late = await openEtcdStore({ endpoints, prefix, offset: () => 1_000_000 })
  t.after(() => late.close())
  const written = await early.commit([put('b')]).catch((error: Error) => error.message)
  await late.confirm()
  const seen = late
    .list({ bucket: 'things' })
    .entries.map(({ key, revision }) => `${key.name} ${revision > 1_000_000 ? 'new offset' : 'old'}`)
  assert.equal(typeof written, 'string', `the old replica wrote revision ${written}; the new one shows ${seen}`)
})
