// Errors about decrypted values name the field and never quote the value.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { kinds } from '../kinds/index.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { recordsIn } from '../storage/backup.ts'
import { openSealer } from '../storage/encryption.ts'
import { makeKeyRing, readKeyRing } from '../storage/key-ring.ts'
import { undecryptableIn } from './verify-encryption.ts'

const random = (size: number) => randomBytes(size)
const sealer = openSealer({ keys: readKeyRing(makeKeyRing(random)), random })

test('a decrypted value that is not JSON is an error, which does not quote it', () => {
  const metadata = { name: 'db', namespace: 'default', uid: 'u', resourceVersion: '7' }
  const place = { kind: SharedSecret.id, namespace: 'default', name: 'db', uid: 'u', path: 'spec.data' }
  for (const plaintext of ['canary-in-a-seal', '{"password":"canary-in-a-seal"', '']) {
    const object = { metadata, spec: { data: sealer.seal(place, plaintext) } }
    const key = { bucket: SharedSecret.id, namespace: 'default', name: 'db' }
    const entry = { key, revision: 7, text: Buffer.from(JSON.stringify(object)), labels: undefined }
    assert.deepEqual(undecryptableIn(kinds, sealer)(entry as never), [
      `spec.data of ${SharedSecret.id} default/db cannot be decoded: the decrypted value is not JSON`,
    ])
  }
})

test('a backup record that is not JSON is an error, which does not quote it', () => {
  const fields = Buffer.from('canary: a key')
  const sizes = Buffer.alloc(8)
  sizes.writeUInt32BE(fields.length, 0)
  assert.throws(() => [...recordsIn(Buffer.concat([sizes, fields]))], {
    message: 'the fields of the record are not JSON',
  })
})
