// Signing out when a part of it fails, or while devices sign in.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { buildApiServer } from '../../../test/support/in-process.ts'
import { type ApiError, unavailable } from '../../api/errors.ts'
import type { Resources } from '../../api/resources.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { openAccessKeyIndex } from '../authn/access-key-index.ts'
import type { Provider, SignedIn } from '../oidc/provider.ts'
import { openSessions } from './sessions.ts'

const provider = {
  config: { name: 'corp', url: 'https://corp.example', lifetimes: { idle: 3600, max: 36_000 } },
} as unknown as Provider
const person = (username: string): SignedIn =>
  ({ issuer: provider.config.url, subject: username, username, groups: [], idToken: 'x' }) as unknown as SignedIn

async function openStage(t: TestContext) {
  const { clock, internalClient, opened, close } = await buildApiServer()
  const failed = (error: unknown) => assert.fail(String(error))
  const keyIndex = openAccessKeyIndex({ internalClient, changed: () => {}, unused: () => {}, failed })
  t.after(async () => {
    keyIndex.stop()
    await close()
  })
  await keyIndex.ready
  let beforeDelete: (() => Promise<void>) | undefined
  const remove: Resources['delete'] = async (...request) => {
    await beforeDelete?.()
    return internalClient.delete(...request)
  }
  const sessions = openSessions({
    keyIndex,
    providerNamed: () => provider,
    signIn: async (_, { username }) => ({ username }),
    resources: { ...internalClient, delete: remove },
    open: name => opened(OwnedAccessKey, { namespace: '', name }),
    isLive: ({ uid, deleting }) => !deleting && keyIndex.withUid(uid) !== undefined,
    now: clock.now,
  })
  const signIn = () => sessions.create(provider, person('ada'), 'browser')
  const uidOf = (name: string) => [...keyIndex.all()].find(key => key.name === name)?.uid ?? ''
  return {
    sessions,
    signIn,
    device: (name: string) => sessions.derive(uidOf(name), 'device'),
    open: () => [...keyIndex.ofUser('ada')].filter(({ deleting }) => !deleting).map(({ name }) => name),
    forward: clock.forward,
    onDelete(action?: () => Promise<void>) {
      beforeDelete = action
    },
  }
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 200,
    (error: ApiError) => error.code,
  )

for (const place of [1, 2, 3])
  test(`a sign-out everywhere that failed at delete ${place} can be repeated`, async t => {
    const { sessions, signIn, device, open, onDelete } = await openStage(t)
    const first = await signIn()
    const second = await signIn()
    await device(second.name)
    assert.equal(open().length, 3)
    let count = 0
    onDelete(async () => {
      if (++count === place) throw unavailable('the storage does not answer')
    })
    const leave = () => sessions.end(first.secret, { isEverywhere: true })
    assert.equal(await codeOf(leave()), 503)
    assert.ok(open().includes(first.name), 'the own session is the last')
    await leave()
    assert.deepEqual(open(), [])
  })

test('a sign-out everywhere says if sessions are left, because others sign in all the time', async t => {
  const { sessions, signIn, open, onDelete } = await openStage(t)
  const { secret } = await signIn()
  onDelete(async () => void (await signIn()))
  assert.equal(await codeOf(sessions.end(secret, { isEverywhere: true })), 503)
  assert.ok(open().length > 0)
})

test('a sign-out ends a device that signs in again and again', async t => {
  const { sessions, signIn, device, open, onDelete } = await openStage(t)
  const { secret, name } = await signIn()
  let last = (await device(name)).name
  let count = 0
  onDelete(async () => {
    const next = await device(last).catch(() => undefined)
    if (next) count++
    last = next?.name ?? last
  })
  await sessions.end(secret, { isEverywhere: true })
  assert.ok(count > 0, 'a device got a session in the meantime')
  assert.deepEqual(open(), [])
})

test('a device ends neither the session that confirms it nor its sign-in, if there are too many', async t => {
  const { signIn, device, open, forward } = await openStage(t)
  const { name: first } = await signIn()
  forward(1)
  const { name: second } = await device(first)
  forward(1)
  for (let count = 2; count < 50; count++) await device(first)
  assert.equal(open().length, 50)
  const third = open().find(name => ![first, second].includes(name)) ?? ''
  await device(second)
  assert.deepEqual(
    [first, second].filter(name => !open().includes(name)),
    [],
  )
  assert.equal(open().length, 50)
  assert.ok(!open().includes(third), 'the oldest of the others has ended')
})
