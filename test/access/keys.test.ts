// The life of a key, on a clock that the test moves: warnings before its end, the end itself, a maximum for all (D18).

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { systemCaller } from '../../src/api/caller.ts'
import { buildApiServer } from '../../src/apiserver/build.ts'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import { TokenReview } from '../../src/kinds/subject-reviews.ts'
import { openStorage } from '../../src/storage/index.ts'

const day = 24 * 3600

async function open(maxKeyTTL?: number) {
  const clock = { now: Date.parse('2026-01-01T00:00:00Z') }
  const now = () => clock.now
  const storage = await openStorage({ engine: 'memory', directory: '', now })
  const apiServer = buildApiServer({
    storage,
    keys: [{ id: 'test', key: randomBytes(32) }],
    now,
    failed: (_, error) => assert.fail(String(error)),
    ...(maxKeyTTL ? { maxKeyTTL } : {}),
  })
  await apiServer.ready
  return {
    apiServer,
    forward: (seconds: number) => {
      clock.now += seconds * 1000
    },
    /** A key of the administrator, made by the server itself or by the administrator. */
    make: async (spec: object, by: 'server' | 'admin' = 'server') => {
      const admin = { identity: 'User' as const, username: 'admin', groups: ['system:authenticated'] }
      const resources = apiServer.registry.as(by === 'server' ? systemCaller : admin)
      const { object } = await resources.create(OwnedAccessKey, '', {
        metadata: { generateName: 'k-' },
        spec: { user: 'admin', ...spec },
      })
      return { name: object.metadata.name, header: `Bearer ${(object.spec as { key: string }).key}` }
    },
    disable: (name = '') =>
      apiServer.registry
        .as({ identity: 'User', username: 'admin', groups: ['system:authenticated'] })
        .patch(OwnedAccessKey, { namespace: '', name }, { type: 'merge', body: { spec: { disabled: true } } }),
    close: async () => {
      apiServer.stop()
      await storage.close()
    },
  }
}

test('the server warns about a key in the last tenth of its lifetime, once an hour, in days and then in hours', async () => {
  const { apiServer, forward, make, close } = await open()
  const { name, header } = await make({ ttl: 30 * day })
  const told = () => apiServer.warningFor(apiServer.authenticate(header) as never)
  assert.equal(told(), undefined)
  forward(26.9 * day)
  assert.equal(told(), undefined)
  forward(0.2 * day)
  assert.equal(told(), `access key ${name} expires in 2 days`)
  assert.equal(told(), undefined, 'once is enough for an hour')
  forward(3601)
  assert.equal(told(), `access key ${name} expires in 2 days`)
  forward(2.5 * day)
  assert.match(told() ?? '', /expires in \d+ hours$/)
  await close()
})

test('the server does not warn about short-lived keys and keys whose lifetime use extends', async () => {
  const { apiServer, forward, make, close } = await open()
  const short = await make({ ttl: 3600 })
  const sliding = await make({ ttl: 10 * day, ttlAfterLastActivity: true })
  forward(3500)
  for (const { header } of [short, sliding])
    assert.equal(apiServer.warningFor(apiServer.authenticate(header) as never), undefined)
  await close()
})

test('a key expires after its ttl, from its creation or from its last use', async () => {
  const { apiServer, forward, make, close } = await open()
  const fixed = await make({ ttl: 100 })
  const sliding = await make({ ttl: 100, ttlAfterLastActivity: true })
  forward(99)
  for (const { header } of [fixed, sliding]) assert.equal(apiServer.authenticate(header)?.username, 'admin')
  forward(2)
  assert.throws(() => apiServer.authenticate(fixed.header), { message: 'access key expired' })
  assert.equal(apiServer.authenticate(sliding.header)?.username, 'admin')
  forward(101)
  assert.throws(() => apiServer.authenticate(sliding.header), { message: 'access key expired' })
  await close()
})

test('auth.maxKeyTTL rejects longer and unlimited keys, and expires existing ones', async () => {
  const { apiServer, forward, make, disable, close } = await open(7 * day)
  await assert.rejects(make({}, 'admin'), { code: 422 })
  await assert.rejects(make({ ttl: 8 * day }, 'admin'), { code: 422 })
  await make({ ttl: 7 * day }, 'admin')
  const endless = await make({})
  await disable((await make({})).name)
  forward(7 * day - 1)
  assert.equal(apiServer.authenticate(endless.header)?.username, 'admin')
  forward(2)
  assert.throws(() => apiServer.authenticate(endless.header), { message: 'access key expired' })
  await close()
})

test('an earlier request on the same connection authenticates nothing, and a deleted key stops working on it', async () => {
  const { apiServer, make, close } = await open()
  const connection = {}
  const [one, other] = [await make({}), await make({})]
  const keyOf = (header: string) => apiServer.authenticate(header, false, connection)?.key
  assert.deepEqual([keyOf(one.header), keyOf(other.header), keyOf(one.header)], [one.name, other.name, one.name])
  for (const header of [`${one.header}x`, one.header.slice(0, -1), one.header.toLowerCase(), 'Bearer ', 'Basic x'])
    assert.throws(() => keyOf(header), { code: 401 }, header)
  await apiServer.internalClient.delete(OwnedAccessKey, { namespace: '', name: one.name ?? '' })
  assert.throws(() => keyOf(one.header), { message: 'access key was deleted' })
  assert.equal(keyOf(other.header), other.name)
  await close()
})

test('a review of a key has its expiry, by its ttl, its last use or the overlap after a rotation (D33)', async () => {
  const { apiServer, forward, make, close } = await open()
  const resources = apiServer.registry.as(systemCaller)
  const endsIn = async (header: string) => {
    const { object } = await resources.create(TokenReview, '', { spec: { token: header.slice(7) } })
    const { user } = object.status as { user?: { extra?: { [name: string]: string[] } } }
    return user?.extra?.['authentication.platform.sh/key-ends-in']?.[0]
  }
  const [lasting, brief, sliding] = [
    await make({}),
    await make({ ttl: 100 }),
    await make({ ttl: 100, ttlAfterLastActivity: true }),
  ]
  assert.deepEqual(await Promise.all([lasting, brief, sliding].map(one => endsIn(one.header))), [
    undefined,
    '100',
    '100',
  ])
  forward(40)
  apiServer.authenticate(sliding.header)
  assert.deepEqual(await Promise.all([brief, sliding].map(one => endsIn(one.header))), ['60', '100'])
  await resources.act(OwnedAccessKey, { namespace: '', name: lasting.name ?? '' }, 'rotate', {
    spec: { overlapSeconds: 30 },
  })
  forward(10)
  assert.equal(await endsIn(lasting.header), '20')
  forward(20)
  assert.equal(await endsIn(lasting.header), undefined, 'it does not count any more')
  await close()
})
