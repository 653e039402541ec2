// The end of an overlap by a clock that can be moved, and a controller that begins anew (D22).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHouse } from '../../test/support/in-process.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { startRotationOverlap } from './rotation-overlap.ts'

const at = { namespace: '', name: 'ci' }

/** A rotated key, and what is revoked after the controller, begun anew at this time, has looked at it. */
async function openRotated(overlapSeconds: number) {
  const house = await openHouse()
  await house.resources.create(OwnedAccessKey, '', { metadata: { name: 'ci' }, spec: { user: 'ada' } })
  await house.resources.act(OwnedAccessKey, at, 'rotate', { spec: { overlapSeconds } })
  const rotated = house.clock.now()
  const revoked = async () => {
    const fail = (_: string, error: unknown) => assert.fail(String(error))
    const { inside, write, clock } = house
    const controller = startRotationOverlap({ resources: inside, write, now: clock.now, failed: fail })
    await controller.ready
    await controller.idle()
    await controller.stop()
    return (await inside.list(TokenRevocation)).items.map(({ object }) => object)
  }
  const set = (spec: object) => house.resources.patch(OwnedAccessKey, at, { type: 'merge', body: { spec } as never })
  return { house, revoked, rotated, set }
}

test('tokens from before a rotation are revoked once, when the overlap is over', async () => {
  const { house, revoked, rotated } = await openRotated(60)
  house.clock.forward(59)
  assert.deepEqual(await revoked(), [])
  house.clock.forward(1)
  const [first, ...more] = await revoked()
  assert.equal(more.length, 0)
  assert.equal(Date.parse(String(first?.spec?.['notBefore'])), rotated)
  assert.equal(first?.spec?.['tokensOnly'], true)
  house.clock.forward(60)
  assert.deepEqual(await revoked(), [first])
  await house.close()
})

test('an overlap that outlasts every token from before leaves nothing to revoke', async () => {
  const { house, revoked } = await openRotated(2 * 86_400)
  house.clock.forward(2 * 86_400)
  assert.deepEqual(await revoked(), [])
  await house.close()
})

test('what was revoked later for another reason stays as it is', async () => {
  const { house, revoked, set } = await openRotated(60)
  house.clock.forward(30)
  await set({ disabled: true })
  await set({ disabled: false })
  const [before] = await revoked()
  house.clock.forward(30)
  assert.deepEqual(await revoked(), [before])
  assert.equal(before?.spec?.['tokensOnly'], undefined)
  await house.close()
})

test('what was revoked earlier stays a revocation of the key itself, and is no new one to gateways', async () => {
  const { house, revoked, set, rotated } = await openRotated(0)
  const [replaced] = await revoked()
  house.clock.forward(10)
  await house.resources.act(OwnedAccessKey, at, 'rotate', { spec: { overlapSeconds: 60 } })
  house.clock.forward(60)
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
  await house.close()
})
