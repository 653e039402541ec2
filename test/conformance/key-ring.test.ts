// Every object is checked for keys that the key ring lacks, not only the first of a kind (D28).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import { SharedSecret } from '../../src/kinds/shared-secret.ts'
import { valueOfUnknownKey } from '../../src/registry/key-ring-check.ts'
import { openSealer } from '../../src/storage/encryption.ts'
import { openMemoryStore } from '../../src/storage/memory.ts'
import type { Store } from '../../src/storage/store.ts'

const kinds = [SharedSecret, OwnedAccessKey]

async function put(store: Store, bucket: string, name: string, spec: object): Promise<void> {
  const namespace = bucket === SharedSecret.id ? 'default' : ''
  const head = `{"metadata":{"name":"${name}","resourceVersion":"`
  const text = Buffer.from(`${head}","uid":"u"},"spec":${JSON.stringify(spec)}}`)
  await store.commit([{ type: 'put', key: { bucket, namespace, name }, value: { text, gap: head.length } }])
}

const sealed = (id: string) => {
  const sealer = openSealer({ keys: [{ id, key: new Uint8Array(32) }], random: size => new Uint8Array(size) })
  return sealer.seal({ kind: 'k', namespace: '', name: 'n', uid: 'u', path: 'p' }, 'x')
}

test('a value encrypted with a missing key is found in every object', async () => {
  const store = openMemoryStore({ now: Date.now })
  await put(store, SharedSecret.id, 'a', { data: sealed('old') })
  await put(store, SharedSecret.id, 'b', { data: sealed('new') })
  await put(store, OwnedAccessKey.id, 'c', { identity: { connectorData: sealed('new') } })
  assert.equal(valueOfUnknownKey(store, kinds, ['new', 'old']), undefined)
  assert.equal(
    valueOfUnknownKey(store, kinds, ['old']),
    `spec.data of ${SharedSecret.id} default/b is encrypted with the key "new"`,
  )
  assert.equal(
    valueOfUnknownKey(store, kinds, ['new']),
    `spec.data of ${SharedSecret.id} default/a is encrypted with the key "old"`,
  )
  await store.close()
})

test('clear text that looks encrypted does not prevent a start', async () => {
  const store = openMemoryStore({ now: Date.now })
  await put(store, SharedSecret.id, 'a', {
    displayName: 'sealed:v1:none:x',
    description: 'sealed:v1:',
    data: sealed('new'),
  })
  assert.equal(valueOfUnknownKey(store, kinds, ['new']), undefined)
  await store.close()
})
