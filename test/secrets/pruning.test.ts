// How long versions of secrets are kept, with a clock that can be moved (D35).

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startSecretVersions } from '../../src/controllers/secret-versions.ts'
import { SecretVersion } from '../../src/kinds/secret-version.ts'
import { SharedSecret } from '../../src/kinds/shared-secret.ts'
import { type ApiServer, buildApiServer } from '../support/in-process.ts'

const day = 24 * 3600
let apiServer: ApiServer
before(async () => {
  apiServer = await buildApiServer()
})
after(() => apiServer.close())

/** The remaining versions after a newly started controller has processed everything. */
async function leftAfterStart(max: number): Promise<number[]> {
  const failed = (what: string, error: unknown) => assert.fail(`${what}: ${error}`)
  const options = {
    resources: apiServer.internalClient,
    max,
    days: 90,
    now: apiServer.clock.now,
    gone: () => {},
    failed,
  }
  const controller = startSecretVersions(options)
  await controller.ready
  await controller.idle()
  await controller.stop()
  const { items } = await apiServer.internalClient.list(SecretVersion)
  return items
    .map(({ object }) => (object.spec?.['version'] as { number?: number } | undefined)?.number ?? 0)
    .sort((a, b) => a - b)
}

test('a version is kept for the configured days after it was replaced, however old it was then', async () => {
  const ref = { namespace: 'default', name: 'a' }
  const set = (n: string) =>
    apiServer.resources.patch(SharedSecret, ref, { type: 'merge', body: { spec: { data: { n } } } }, {})
  await apiServer.resources.create(SharedSecret, 'default', { metadata: { name: 'a' }, spec: { data: { n: 'MQ==' } } })
  apiServer.clock.forward(200 * day)
  await set('Mg==')
  apiServer.clock.forward(60 * day)
  await set('Mw==')
  assert.deepEqual(await leftAfterStart(20), [1, 2])
  apiServer.clock.forward(29 * day)
  assert.deepEqual(await leftAfterStart(20), [1, 2])
  apiServer.clock.forward(2 * day)
  assert.deepEqual(await leftAfterStart(20), [2])
  await set('NA==')
  assert.deepEqual(await leftAfterStart(1), [3])
  assert.deepEqual(await leftAfterStart(0), [])
})
