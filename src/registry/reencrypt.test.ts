// Re-encryption resumes after an interruption, skips undecryptable values, and never blocks a write (D28).

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { openSealer } from '../storage/encryption.ts'
import { openMemoryStore } from '../storage/memory.ts'
import { type Store, StoreError } from '../storage/store.ts'
import { encode } from './object-codec.ts'
import { countByKey, openReencryption } from './reencrypt.ts'
import { unpackData } from './sealed-data.ts'

const kinds = [SharedSecret]
const [old, next] = ['old', 'next'].map(id => ({ id, key: new Uint8Array(randomBytes(32)) })) as [RingKey, RingKey]
type RingKey = { readonly id: string; readonly key: Uint8Array }

async function fill(many: number) {
  const store = openMemoryStore()
  const sealer = openSealer({ keys: [old], random: size => randomBytes(size) })
  for (let index = 0; index < many; index++) await put(store, sealer, `s${index}`)
  sealer.use([next, old])
  return { store, sealer }
}

async function put(store: Store, sealer: ReturnType<typeof openSealer>, name: string, more: object = {}) {
  const metadata = { name, namespace: 'default', uid: `uid-${name}` }
  const object = { apiVersion: SharedSecret.apiVersion, kind: 'SharedSecret', metadata, spec: { data: { a: name } } }
  const value = encode({ sealer }, SharedSecret, { ...object, ...more })
  await store.commit([{ type: 'put', key: { bucket: SharedSecret.id, namespace: 'default', name }, value }])
}

const seals = (store: Store) => Object.fromEntries(countByKey(store, kinds))
const fail = (what: string, error: unknown) => assert.fail(`${what}: ${error}`)

test('re-encrypts every value at its revision', async () => {
  const { store, sealer } = await fill(200)
  const { revision } = store
  assert.deepEqual(seals(store), { old: 200 })
  const reseal = openReencryption({ store, sealer, kinds, failed: fail })
  reseal.begin()
  await reseal.idle()
  assert.deepEqual(seals(store), { next: 200 })
  assert.equal(reseal.done, 200)
  assert.equal(store.revision, revision)
  sealer.use([next])
  reseal.begin()
  await reseal.idle()
  assert.equal(reseal.done, 200, 'finished values are not encrypted again')
})

test('retries after a disk failure, and encrypts nothing twice', async () => {
  const { store, sealer } = await fill(200)
  let calls = 0
  const failing = {
    list: store.list,
    replace: async (items: Parameters<Store['replace']>[0]) => {
      if (++calls === 2) throw new StoreError('unavailable', 'the disk is full')
      return store.replace(items)
    },
  }
  const failures: string[] = []
  const failed = (_: string, error: unknown) => void failures.push((error as Error).message)
  const reseal = openReencryption({ store: failing, sealer, kinds, failed, wait: async () => {} })
  reseal.begin()
  await reseal.idle()
  assert.deepEqual(failures, ['the disk is full'])
  assert.deepEqual(seals(store), { next: 200 })
  assert.equal(reseal.done, 200)
})

test('another run finishes after a stop', async () => {
  const { store, sealer } = await fill(300)
  const first = openReencryption({ store, sealer, kinds, failed: fail })
  first.begin()
  await first.stop()
  assert.ok((seals(store)['old'] ?? 0) > 0, 'stopped before the end')
  const second = openReencryption({ store, sealer, kinds, failed: fail })
  second.begin()
  await second.idle()
  assert.deepEqual(seals(store), { next: 300 })
  assert.equal(first.done + second.done, 300)
})

test('skips and counts undecryptable values', async () => {
  const { store, sealer } = await fill(3)
  const foreign = openSealer({ keys: [{ id: 'old', key: new Uint8Array(32) }], random: size => randomBytes(size) })
  await put(store, foreign, 'broken')
  const reseal = openReencryption({ store, sealer, kinds, failed: fail })
  reseal.begin()
  await reseal.idle()
  assert.deepEqual(seals(store), { next: 3, old: 1 })
  assert.equal(reseal.broken, 1)
})

test('keeps concurrent writes', async () => {
  const { store, sealer } = await fill(200)
  const reseal = openReencryption({ store, sealer, kinds, failed: fail })
  reseal.begin()
  const writes = Array.from({ length: 200 }, (_, index) =>
    put(store, sealer, `s${index}`, { spec: { data: { a: 'newer' } } }),
  )
  await Promise.all([...writes, reseal.idle()])
  for (const { text, key } of store.list({ bucket: SharedSecret.id }).entries) {
    const { spec } = JSON.parse(text.toString()) as { spec: { data: string } }
    const place = { kind: SharedSecret.id, namespace: 'default', name: key.name, uid: `uid-${key.name}` }
    assert.deepEqual(
      { ...(unpackData(sealer.open({ ...place, path: 'spec.data' }, spec.data)) as object) },
      { a: 'newer' },
    )
  }
})
