// When revocations go, by a clock that can be moved, and what is merged into one that is there (D33).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildApiServer } from '../../test/support/in-process.ts'
import type { Resources } from '../api/resources.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { Team } from '../kinds/team.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { startRevocationSweep } from './revocation-sweep.ts'

const day = 24 * 3600
const at = (name: string) => ({ namespace: '', name })

/** `sweep` returns the revocations that remain after the controller, restarted at this time, has run. */
async function openSweep(maxTokenTTL = day) {
  const apiServer = await buildApiServer({ maxTokenTTL })
  const left = async () => (await apiServer.internalClient.list(TokenRevocation)).items.map(({ object }) => object)
  const sweep = async (resources: Resources = apiServer.internalClient) => {
    const fail = (_: string, error: unknown) => assert.fail(String(error))
    const controller = startRevocationSweep({ resources, now: apiServer.clock.now, failed: fail })
    await controller.ready
    await controller.idle()
    await controller.stop()
    return left()
  }
  return { apiServer, left, sweep, forward: (days: number) => apiServer.clock.forward(days * day) }
}

for (const maxTokenTTL of [day, 600])
  test(`a revocation is deleted when all affected tokens have expired, and not before, with tokens of ${maxTokenTTL} s`, async () => {
    const { apiServer, sweep, forward } = await openSweep(maxTokenTTL)
    await apiServer.resources.create(TokenRevocation, '', { spec: { jti: 'a' } })
    forward(1)
    assert.equal((await sweep()).length, 1)
    forward(0.01)
    assert.equal((await sweep()).length, 0)
    await apiServer.close()
  })

test('a revocation outlives the affected tokens, whatever its end and despite clock skew', async () => {
  const { apiServer } = await openSweep()
  const now = apiServer.clock.now()
  const text = (milliseconds: number) => new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z')
  const until = async (spec: object) => {
    const { object } = await apiServer.resources.create(TokenRevocation, '', { spec: { jti: 'a', ...spec } })
    return (Date.parse(String(object.spec?.['until'])) - now) / 1000
  }
  const least = day + 300
  assert.ok((await until({})) >= least)
  assert.ok((await until({ until: text(now + 60_000) })) >= least)
  assert.ok((await until({ notBefore: text(now - 2 * day * 1000), until: text(now + 60_000) })) < least)
  assert.ok((await until({ notBefore: text(now + day * 1000) })) >= day + least)
  const later = now + 9 * day * 1000
  assert.equal(await until({ until: text(later) }), Math.floor(later / 1000) - now / 1000)
  await apiServer.close()
})

test('a revocation that is merged before its deletion stays', async () => {
  const { apiServer, left, sweep, forward } = await openSweep()
  await apiServer.resources.create(OwnedAccessKey, '', { metadata: { name: 'ci' }, spec: { user: 'ada' } })
  const set = (disabled: boolean) =>
    apiServer.resources.patch(OwnedAccessKey, at('ci'), { type: 'merge', body: { spec: { disabled } } })
  await set(true)
  const [first] = await left()
  forward(2)
  await set(false)
  const [merged, ...more] = await sweep({
    ...apiServer.internalClient,
    delete: async (...wanted) => {
      await set(true)
      return apiServer.internalClient.delete(...wanted)
    },
  })
  assert.equal(more.length, 0)
  assert.equal(merged?.metadata.name, first?.metadata.name)
  assert.equal(Date.parse(String(merged?.spec?.['notBefore'])), apiServer.clock.now())
  assert.equal((await sweep()).length, 1)
  await apiServer.close()
})

test('a name is removed from the revocation of a team when its earlier tokens have expired, and keeps its own time until then', async () => {
  const { apiServer, left, forward } = await openSweep()
  const users = (...names: string[]) =>
    apiServer.resources.patch(Team, at('crew'), { type: 'merge', body: { spec: { users: names } } })
  await apiServer.resources.create(Team, '', { metadata: { name: 'crew' }, spec: { users: ['ada', 'bob', 'eve'] } })
  const start = apiServer.clock.now()
  await users('bob', 'eve')
  forward(0.5)
  await users('eve')
  const since = async () => {
    const [one] = await left()
    const { users = [], since = {} } = (one?.spec ?? {}) as { users?: string[]; since?: { [name: string]: string } }
    const days = Object.entries(since).map(([name, time]) => `${name} ${(Date.parse(time) - start) / 1000 / day}`)
    return [[...users].sort(), days]
  }
  assert.deepEqual(await since(), [['ada', 'bob'], ['ada 0']])
  forward(0.6)
  await users()
  assert.deepEqual(await since(), [['bob', 'eve'], ['bob 0.5']])
  // A user of this name is a property of no map.
  await users('__proto__', 'constructor')
  await users()
  assert.deepEqual(await since(), [['__proto__', 'bob', 'constructor', 'eve'], ['bob 0.5']])
  forward(0.1)
  await users('zoe')
  await users()
  assert.deepEqual((await since())[1]?.sort(), ['__proto__ 1.1', 'bob 0.5', 'constructor 1.1', 'eve 1.1'])
  await apiServer.close()
})
