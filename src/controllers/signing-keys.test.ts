// Signing keys over months, by a clock that can be moved (D31), and revocations that outlived what they concern (D33).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHouse } from '../../test/support/in-process.ts'
import { SigningKey } from '../kinds/signing-key.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { startSigningKeys } from './signing-keys.ts'

const day = 24 * 3600

/** What is there after the controller, begun anew at this time, has done its work. */
async function openKeys(maxTokenTTL = day) {
  const house = await openHouse({ maxTokenTTL })
  const look = async (): Promise<{ name: string; signsIn: number }[]> => {
    const fail = (_: string, error: unknown) => assert.fail(String(error))
    const controller = startSigningKeys({ resources: house.inside, now: house.clock.now, failed: fail })
    await controller.ready
    await controller.stop()
    const { items } = await house.inside.list(SigningKey)
    return items
      .map(({ ref, object }) => ({
        name: ref.name,
        signsIn: Math.round((Date.parse(String(object.spec?.['signsFrom'])) - house.clock.now()) / 1000),
      }))
      .sort((one, other) => one.signsIn - other.signsIn)
  }
  return { house, look, forward: (days: number) => house.clock.forward(days * day) }
}

test('the first key signs at once; the next is published a day before it takes over after 30 days; the old one goes when no token of it can be alive (D31)', async () => {
  const { house, look, forward } = await openKeys()
  const [first, ...none] = await look()
  assert.deepEqual([none.length, (first?.signsIn ?? 1) <= 0], [0, true])
  forward(28.9)
  assert.equal((await look()).length, 1)
  forward(0.2)
  const [old, next, ...more] = await look()
  assert.deepEqual([old?.name, more.length], [first?.name, 0])
  assert.ok((next?.signsIn ?? 0) >= 0.9 * day - 1 && (next?.signsIn ?? 0) <= day, String(next?.signsIn))
  forward(1.5)
  assert.equal((await look()).length, 2, 'both are published while tokens of the old one live')
  forward(0.6)
  assert.deepEqual(
    (await look()).map(({ name }) => name),
    [next?.name],
  )
  await house.close()
})

test('after a long sleep the newest key goes on signing, and its successor is published a day ahead', async () => {
  const { house, look, forward } = await openKeys()
  const [first] = await look()
  forward(200)
  const [still, next] = await look()
  assert.equal(still?.name, first?.name)
  assert.ok(Math.abs((next?.signsIn ?? 0) - day) <= 1, String(next?.signsIn))
  await house.close()
})

test('a key that is deleted is replaced at once', async () => {
  const { house, look } = await openKeys()
  const [first] = await look()
  await house.inside.delete(SigningKey, { namespace: '', name: first?.name ?? '' })
  const [second, ...more] = await look()
  assert.ok(second && second.name !== first?.name && second.signsIn <= 0 && more.length === 0)
  await house.close()
})

test('a revocation goes when no token it concerns can be alive, and not before (D33)', async () => {
  const { house, look, forward } = await openKeys()
  await house.resources.create(TokenRevocation, '', { spec: { jti: 'a' } })
  const left = async () => (await house.inside.list(TokenRevocation)).items.length
  forward(1)
  await look()
  assert.equal(await left(), 1)
  forward(0.01)
  await look()
  assert.equal(await left(), 0)
  await house.close()
})

test('a maximum that was lowered does not bring back tokens from before it, nor end them early (D31, D33)', async () => {
  const { house, look, forward } = await openKeys(600)
  const [first] = await look()
  await house.resources.create(TokenRevocation, '', { spec: { jti: 'a' } })
  await house.resources.create(SigningKey, '', {})
  forward(0.99)
  assert.ok(
    (await look()).some(({ name }) => name === first?.name),
    'what it signed yesterday is still good',
  )
  assert.equal((await house.inside.list(TokenRevocation)).items.length, 1)
  await house.close()
})

test('a revocation outlives the tokens it concerns, whatever end it was given, and clocks that are apart (D33)', async () => {
  const { house } = await openKeys()
  const now = house.clock.now()
  const at = (milliseconds: number) => new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z')
  const until = async (spec: object) => {
    const { object } = await house.resources.create(TokenRevocation, '', { spec: { jti: 'a', ...spec } })
    return (Date.parse(String(object.spec?.['until'])) - now) / 1000
  }
  const least = day + 300
  assert.ok((await until({})) >= least)
  assert.ok((await until({ until: at(now + 60_000) })) >= least)
  assert.ok((await until({ notBefore: at(now - 2 * day * 1000), until: at(now + 60_000) })) < least, 'nothing is alive')
  assert.ok((await until({ notBefore: at(now + day * 1000) })) >= day + least)
  const later = now + 9 * day * 1000
  assert.equal(await until({ until: at(later) }), Math.floor(later / 1000) - now / 1000)
  await house.close()
})
