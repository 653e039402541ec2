// Signing keys over months, by a clock that can be moved (D31).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildApiServer } from '../../test/support/in-process.ts'
import { SigningKey } from '../kinds/signing-key.ts'
import { startSigningKeys } from './signing-keys.ts'

const day = 24 * 3600

/** The signing keys after the controller, restarted at this time, has run. */
async function openKeys(maxTokenTTL = day) {
  const apiServer = await buildApiServer({ maxTokenTTL })
  const look = async (): Promise<{ name: string; signsIn: number }[]> => {
    const fail = (_: string, error: unknown) => assert.fail(String(error))
    const controller = startSigningKeys({ resources: apiServer.internalClient, now: apiServer.clock.now, failed: fail })
    await controller.ready
    await controller.stop()
    const { items } = await apiServer.internalClient.list(SigningKey)
    return items
      .map(({ ref, object }) => ({
        name: ref.name,
        signsIn: Math.round((Date.parse(String(object.spec?.['signsFrom'])) - apiServer.clock.now()) / 1000),
      }))
      .sort((one, other) => one.signsIn - other.signsIn)
  }
  return { apiServer, look, forward: (days: number) => apiServer.clock.forward(days * day) }
}

test('the first key signs immediately; the next is published a day before it signs after 30 days; the old one is deleted after its last token expired (D31)', async () => {
  const { apiServer, look, forward } = await openKeys()
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
  await apiServer.close()
})

test('after a long pause the newest key keeps signing, and its successor is published a day ahead', async () => {
  const { apiServer, look, forward } = await openKeys()
  const [first] = await look()
  forward(200)
  const [still, next] = await look()
  assert.equal(still?.name, first?.name)
  assert.ok(Math.abs((next?.signsIn ?? 0) - day) <= 1, String(next?.signsIn))
  await apiServer.close()
})

test('a deleted key is replaced immediately', async () => {
  const { apiServer, look } = await openKeys()
  const [first] = await look()
  await apiServer.internalClient.delete(SigningKey, { namespace: '', name: first?.name ?? '' })
  const [second, ...more] = await look()
  assert.ok(second && second.name !== first?.name && second.signsIn <= 0 && more.length === 0)
  await apiServer.close()
})

test('a lowered maximum does not expire earlier tokens early (D31)', async () => {
  const { apiServer, look, forward } = await openKeys(600)
  const [first] = await look()
  await apiServer.resources.create(SigningKey, '', {})
  forward(0.99)
  assert.ok(
    (await look()).some(({ name }) => name === first?.name),
    'what it signed yesterday is still good',
  )
  await apiServer.close()
})
