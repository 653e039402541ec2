// The end of a rotation's overlap, with a fake clock and a restarted controller (D22).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildApiServer } from '../../test/support/in-process.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { startRotationOverlap } from './rotation-overlap.ts'

const at = { namespace: '', name: 'ci' }

/** A rotated key, and the revocations after the controller, restarted at this time, has run. */
async function openRotated(overlapSeconds: number) {
  const apiServer = await buildApiServer()
  await apiServer.resources.create(OwnedAccessKey, '', { metadata: { name: 'ci' }, spec: { user: 'ada' } })
  await apiServer.resources.act(OwnedAccessKey, at, 'rotate', { spec: { overlapSeconds } })
  const rotated = apiServer.clock.now()
  const revoked = async () => {
    const fail = (_: string, error: unknown) => assert.fail(String(error))
    const { internalClient, write, clock } = apiServer
    const controller = startRotationOverlap({ resources: internalClient, write, now: clock.now, failed: fail })
    await controller.ready
    await controller.idle()
    await controller.stop()
    return (await internalClient.list(TokenRevocation)).items.map(({ object }) => object)
  }
  const set = (spec: object) =>
    apiServer.resources.patch(OwnedAccessKey, at, { type: 'merge', body: { spec } as never })
  return { apiServer, revoked, rotated, set }
}

test('tokens from before a rotation are revoked once, after the overlap', async () => {
  const { apiServer, revoked, rotated } = await openRotated(60)
  apiServer.clock.forward(59)
  assert.deepEqual(await revoked(), [])
  apiServer.clock.forward(1)
  const [first, ...more] = await revoked()
  assert.equal(more.length, 0)
  assert.equal(Date.parse(String(first?.spec?.['notBefore'])), rotated)
  assert.equal(first?.spec?.['tokensOnly'], true)
  apiServer.clock.forward(60)
  assert.deepEqual(await revoked(), [first])
  await apiServer.close()
})

test('an overlap that outlasts all earlier tokens revokes nothing', async () => {
  const { apiServer, revoked } = await openRotated(2 * 86_400)
  apiServer.clock.forward(2 * 86_400)
  assert.deepEqual(await revoked(), [])
  await apiServer.close()
})

test('a later revocation for another reason stays unchanged', async () => {
  const { apiServer, revoked, set } = await openRotated(60)
  apiServer.clock.forward(30)
  await set({ disabled: true })
  await set({ disabled: false })
  const [before] = await revoked()
  apiServer.clock.forward(30)
  assert.deepEqual(await revoked(), [before])
  assert.equal(before?.spec?.['tokensOnly'], undefined)
  await apiServer.close()
})

test('an earlier revocation stays a revocation of the key, and gateways do not receive it twice', async () => {
  const { apiServer, revoked, set, rotated } = await openRotated(0)
  const [replaced] = await revoked()
  apiServer.clock.forward(10)
  await apiServer.resources.act(OwnedAccessKey, at, 'rotate', { spec: { overlapSeconds: 60 } })
  apiServer.clock.forward(60)
  const [merged, ...more] = await revoked()
  assert.equal(more.length, 0)
  assert.equal(merged?.metadata.uid, replaced?.metadata.uid)
  assert.deepEqual(
    [merged?.spec?.['tokensOnly'], Date.parse(String(merged?.spec?.['notBefore'])), merged?.metadata.generation],
    [undefined, rotated + 10_000, 2],
  )
  await set({ disabled: true })
  const [next] = await revoked()
  assert.notEqual(next?.metadata.uid, merged?.metadata.uid)
  await apiServer.close()
})
