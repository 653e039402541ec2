// The encryption key of the offline cache is created on write, never on read.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeIo } from '../../../test/support/fake-io.ts'
import { readCopy } from './offline-cache.ts'

test('reading with a locked keychain does not create a new key, which would invalidate existing copies', async () => {
  const set: string[] = []
  const keychain = {
    get: async () => undefined,
    set: async (name: string) => void set.push(name),
    remove: async () => {},
  }
  const { files } = fakeIo()
  const io = fakeIo(
    {},
    {
      env: { HOME: '/home/ada' },
      keychain: async () => keychain,
      files: { ...files, read: async () => new Uint8Array(100) },
    },
  )
  const of = { server: 'https://x', key: 'k', secrets: ['db'], scope: '/default' }
  assert.equal(await readCopy(io, of), undefined)
  assert.match(io.said(), /no cached copy of db: the keychain is locked or has no key/)
  assert.deepEqual(set, [])
})
