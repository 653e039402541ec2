// How long versions of secrets are kept, with a clock that can be moved (D35).

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startSecretVersions } from '../../src/controllers/secret-versions.ts'
import { SecretVersion } from '../../src/kinds/secret-version.ts'
import { SharedSecret } from '../../src/kinds/shared-secret.ts'
import { type House, openHouse } from '../support/in-process.ts'

const day = 24 * 3600
let house: House
before(async () => {
  house = await openHouse()
})
after(() => house.close())

/** What is left once a controller that was just started has seen everything. */
async function leftAfterStart(most: number): Promise<number[]> {
  const failed = (what: string, error: unknown) => assert.fail(`${what}: ${error}`)
  const options = { resources: house.inside, most, days: 90, now: house.clock.now, gone: () => {}, failed }
  const controller = startSecretVersions(options)
  await controller.ready
  await controller.idle()
  await controller.stop()
  const { items } = await house.inside.list(SecretVersion)
  return items
    .map(({ object }) => (object.spec?.['version'] as { number?: number } | undefined)?.number ?? 0)
    .sort((a, b) => a - b)
}

test('a version is kept for as many days as the setting says after it was replaced, however old it was by then', async () => {
  const ref = { namespace: 'default', name: 'a' }
  const set = (n: string) =>
    house.resources.patch(SharedSecret, ref, { type: 'merge', body: { spec: { data: { n } } } }, {})
  await house.resources.create(SharedSecret, 'default', { metadata: { name: 'a' }, spec: { data: { n: 'MQ==' } } })
  house.clock.forward(200 * day)
  await set('Mg==')
  house.clock.forward(60 * day)
  await set('Mw==')
  assert.deepEqual(await leftAfterStart(20), [1, 2])
  house.clock.forward(29 * day)
  assert.deepEqual(await leftAfterStart(20), [1, 2])
  house.clock.forward(2 * day)
  assert.deepEqual(await leftAfterStart(20), [2])
  await set('NA==')
  assert.deepEqual(await leftAfterStart(1), [3])
  assert.deepEqual(await leftAfterStart(0), [])
})
