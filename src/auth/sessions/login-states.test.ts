// One-time state of sign-in: its limit, its end, and its use by only one of several, by a clock that can be moved.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildApiServer } from '../../../test/support/in-process.ts'
import type { ApiError } from '../../api/errors.ts'
import type { Ref } from '../../api/object.ts'
import { LoginState } from '../../kinds/login-state.ts'
import { openLoginStates } from './login-states.ts'

async function openStage() {
  const { clock, internalClient: resources, opened, close } = await buildApiServer()
  const open = (ref: Ref) => {
    try {
      return opened(LoginState, ref)
    } catch {
      return undefined
    }
  }
  const replica = async () => {
    const states = openLoginStates({ resources, open, now: clock.now, failed: error => assert.fail(String(error)) })
    await states.ready
    return states
  }
  return { forward: clock.forward, resources, replica, close }
}

const entry = { data: { a: 1 }, ttl: 60, max: 3 }
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: ApiError) => error.code,
  )

test('each purpose has a limit, and expired state does not count towards it for long', async () => {
  const { forward, resources, replica, close } = await openStage()
  const states = await replica()
  for (const id of ['a', 'b', 'c']) await states.put('device', id, entry)
  assert.equal(await codeOf(states.put('device', 'd', entry)), 429)
  assert.equal(await codeOf(states.claim('device', 'd', { ttl: 60, max: 3 })), 429)
  assert.equal(await codeOf(states.put('cli', 'd', entry)), 'ok')
  forward(61)
  // The full cache is swept by the request that it refuses.
  assert.equal(await codeOf(states.put('device', 'd', entry)), 429)
  while ((await resources.list(LoginState)).items.length > 0) await new Promise(setImmediate)
  while ((await codeOf(states.put('device', 'd', entry))) !== 'ok') await new Promise(setImmediate)
  states.stop()
  await close()
})

test('state ends, and an expired claim can be made again', async () => {
  const { forward, replica, close } = await openStage()
  const states = await replica()
  await states.put('device', 'a', entry)
  assert.equal(await states.claim('logout', 'a', entry), true)
  assert.deepEqual(states.get('device', 'a'), { a: 1 })
  assert.equal(await states.claim('logout', 'a', entry), false)
  forward(60)
  assert.equal(states.get('device', 'a'), undefined)
  assert.equal(await states.take('device', 'a'), undefined)
  assert.equal(await states.replace('device', 'a', { a: 1 }, { a: 2 }), false)
  assert.equal(await states.claim('logout', 'a', entry), true)
  states.stop()
  await close()
})

test('of several replicas, one takes, changes or claims', async () => {
  const { replica, close } = await openStage()
  const replicas = [await replica(), await replica(), await replica()]
  const [first] = replicas
  const winners = async (work: (one: (typeof replicas)[number]) => Promise<unknown>) =>
    (await Promise.all(replicas.map(work))).filter(Boolean).length
  await first?.put('device', 'a', entry)
  assert.equal(await winners(one => one.replace('device', 'a', { a: 1 }, { a: 2 })), 1)
  assert.equal(await winners(one => one.take('device', 'a')), 1)
  assert.equal(await winners(one => one.claim('logout', 'b', entry)), 1)
  for (const one of replicas) one.stop()
  await close()
})
