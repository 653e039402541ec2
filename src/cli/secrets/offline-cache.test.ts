// The key of the copies: made when one is kept, never when one is only read.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeIo } from '../../../test/support/fake-io.ts'
import { readCopy } from './offline-cache.ts'

test('a keychain that does not open now is not given another key: copies of before would be lost', async () => {
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
  const of = { server: 'https://x', key: 'k', asked: ['db'], place: '/default' }
  assert.equal(await readCopy(io, of), undefined)
  assert.match(io.said(), /there is no copy of db to fall back to: the keychain does not open/)
  assert.deepEqual(set, [])
})
