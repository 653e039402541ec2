// Keys of a deleted User stay invalid, and those of the next User with the name are valid, whatever the clocks of replicas say (D63).

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { buildApiServer } from '../../../test/support/in-process.ts'
import { digest } from '../../admission/digest.ts'
import { timestamp } from '../../api/object.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { User } from '../../kinds/user.ts'
import { UsernameRecord, usernameRef } from '../../kinds/username-record.ts'
import { openAccessKeyIndex } from './access-key-index.ts'
import { openUserIndex } from './user-index.ts'

const minute = 60

async function openStage(t: TestContext) {
  const { clock, internalClient, resources, close } = await buildApiServer()
  const failed = (error: unknown) => assert.fail(String(error))
  const options = { changed: () => {}, unused: () => {}, failed }
  const keys = openAccessKeyIndex({ internalClient, ...options })
  const users = openUserIndex({ resources: internalClient, requireUsers: false, ...options })
  t.after(async () => {
    keys.stop()
    users.stop()
    await close()
  })
  await Promise.all([keys.ready, users.ready])
  return {
    clock,
    internalClient,
    async createUser() {
      await resources.create(User, '', { metadata: { name: 'ada' }, spec: { username: 'ada' } })
    },
    async deleteUser() {
      await resources.delete(User, { namespace: '', name: 'ada' })
    },
    async createKey(name: string) {
      const { object } = await resources.create(OwnedAccessKey, '', { metadata: { name }, spec: { user: 'ada' } })
      return object
    },
    change: (name: string, spec: { ttl: number }) =>
      resources.patch(OwnedAccessKey, { namespace: '', name }, { type: 'merge', body: { spec } }),
    /** Names of the keys of deleted Users. */
    leftOver: () =>
      [...keys.all()]
        .filter(key => users.isLeftOver(key))
        .map(({ name }) => name)
        .sort(),
  }
}

test('a key from a clock that is ahead ends with its User', async t => {
  const { clock, createUser, createKey, deleteUser, leftOver } = await openStage(t)
  await createUser()
  clock.forward(minute)
  await createKey('ahead')
  clock.forward(-minute)
  await deleteUser()
  assert.deepEqual(leftOver(), ['ahead'])
  clock.forward(2 * minute)
  await createUser()
  assert.deepEqual(leftOver(), ['ahead'])
})

test('a key of the next User is valid, also from a clock that is behind, and shows when it was created', async t => {
  const { clock, createUser, createKey, change, deleteUser, leftOver } = await openStage(t)
  await createUser()
  await createKey('first')
  await deleteUser()
  await createUser()
  clock.forward(-minute)
  const { metadata, status } = await createKey('second')
  assert.equal(metadata.creationTimestamp, timestamp(clock.now()))
  assert.equal((status as { userDeletions?: number } | undefined)?.userDeletions, undefined)
  assert.deepEqual(leftOver(), ['first'])
  await change('first', { ttl: 10_000 })
  await change('second', { ttl: 10_000 })
  assert.deepEqual(leftOver(), ['first'])
  await deleteUser()
  assert.deepEqual(leftOver(), ['first', 'second'])
})

test('keys of a User that an earlier version deleted stay invalid', async t => {
  const { clock, internalClient, createUser, createKey, deleteUser, leftOver } = await openStage(t)
  await createKey('before')
  clock.forward(minute)
  const { metadata } = await createKey('listed')
  clock.forward(-1)
  const record = {
    metadata: { name: usernameRef('ada', digest).name },
    spec: { username: 'ada', deletedAt: timestamp(clock.now()), deletedKeys: [metadata.uid ?? ''] },
  }
  await internalClient.create(UsernameRecord, '', record)
  clock.forward(1)
  await createUser()
  await createKey('after')
  assert.deepEqual(leftOver(), ['before', 'listed'])
  await deleteUser()
  await createUser()
  await createKey('last')
  assert.deepEqual(leftOver(), ['after', 'before', 'listed'])
})
