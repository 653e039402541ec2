// Access keys a day after their end (D18), by a clock that can be moved.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildApiServer } from '../../test/support/in-process.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { startExpiry } from './expiry.ts'

const day = 24 * 3600

/** Keys of the administrator, and those that remain after the controller, restarted at this time, has run. */
async function openKeys(keys: { readonly [name: string]: object }, maxTTL?: number) {
  const { clock, internalClient, close } = await buildApiServer()
  const used = new Map<string, number>()
  const uids = new Map<string, string>()
  for (const [name, spec] of Object.entries(keys)) {
    const { object } = await internalClient.create(OwnedAccessKey, '', {
      metadata: { name },
      spec: { user: 'admin', ...spec },
    })
    uids.set(name, object.metadata.uid ?? '')
  }
  const left = async () => {
    const controller = startExpiry({
      resources: internalClient,
      now: clock.now,
      lastActivity: uid => used.get(uid),
      hasDependents: () => false,
      maxTTL,
      failed: (_, error) => assert.fail(String(error)),
    })
    await controller.ready
    await controller.idle()
    await controller.stop()
    return (await internalClient.list(OwnedAccessKey)).items.map(({ ref }) => ref.name).sort()
  }
  return {
    left,
    close,
    use: (name: string) => used.set(uids.get(name) ?? '', clock.now()),
    forward: (days: number) => clock.forward(days * day),
  }
}

test('a key with a ttl is kept for a day after its expiry, and then deleted; an unlimited one stays', async () => {
  const { left, forward, close } = await openKeys({ endless: {}, brief: { ttl: 2 * day }, long: { ttl: 9 * day } })
  forward(2.9)
  assert.deepEqual(await left(), ['brief', 'endless', 'long'])
  forward(0.2)
  assert.deepEqual(await left(), ['endless', 'long'])
  forward(1000)
  assert.deepEqual(await left(), ['endless'])
  await close()
})

test('a key with sliding expiry counts from its last use, or from its creation if unused', async () => {
  const sliding = { ttl: 2 * day, ttlAfterLastActivity: true }
  const { left, use, forward, close } = await openKeys({ never: sliding, used: sliding })
  forward(1.5)
  use('used')
  forward(1.6)
  assert.deepEqual(await left(), ['used'])
  forward(1.5)
  assert.deepEqual(await left(), [])
  await close()
})

test('a maximum expires longer and unlimited keys, and they are deleted like others', async () => {
  const keys = { endless: {}, brief: { ttl: day }, long: { ttl: 9 * day } }
  const { left, forward, close } = await openKeys(keys, 3 * day)
  forward(2.1)
  assert.deepEqual(await left(), ['endless', 'long'])
  forward(2)
  assert.deepEqual(await left(), [])
  await close()
})
