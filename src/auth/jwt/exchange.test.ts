// Exchanged keys and the records of used tokens, by a clock that can be moved.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildApiServer } from '../../../test/support/in-process.ts'
import type { ApiError } from '../../api/errors.ts'
import type { Ref } from '../../api/object.ts'
import { startExpiry } from '../../controllers/expiry.ts'
import { LoginState } from '../../kinds/login-state.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { TokenRevocation } from '../../kinds/token-revocation.ts'
import { openLoginStates } from '../sessions/login-states.ts'
import { openExchange } from './exchange.ts'
import type { AcceptedToken } from './machine-tokens.ts'

const hour = 3600
const failed = (error: unknown) => assert.fail(String(error))

async function openStage(maxKeyTTL?: number) {
  const { clock, internalClient: resources, opened, close } = await buildApiServer()
  const open = (ref: Ref) => {
    try {
      return opened(LoginState, ref)
    } catch {
      return undefined
    }
  }
  const states = openLoginStates({ resources, open, now: clock.now, failed })
  await states.ready
  let token: AcceptedToken
  const exchange = openExchange({ tokens: { tokenOf: () => token }, states, resources, now: clock.now, maxKeyTTL })
  return {
    forward: clock.forward,
    async exchange(jti: string, expires: number) {
      const record = { name: 'ci', url: 'https://issuer.example.org', audiences: ['a'], stamp: 's' }
      token = { record, digest: jti, jti, expires, username: 'ci:robot', groups: [], scope: undefined }
      const { ttl } = await exchange({ username: 'ci:robot', groups: [] })
      return ttl
    },
    now: clock.now,
    /** The number of objects after the sweep. */
    async count() {
      // A restart looks at every key again, as a timer does.
      const sweep = startExpiry({
        resources,
        now: clock.now,
        lastActivity: () => undefined,
        hasDependents: () => false,
        failed: (_, error) => failed(error),
      })
      await sweep.ready
      await sweep.idle()
      await sweep.stop()
      const lists = await Promise.all([OwnedAccessKey, TokenRevocation].map(kind => resources.list(kind)))
      const [keys = 0, revocations = 0] = lists.map(({ items }) => items.length)
      return { keys, revocations }
    },
    async close() {
      states.stop()
      await close()
    },
  }
}

const reasonOf = (work: Promise<unknown>) =>
  work.then(
    () => 'exchanged',
    (error: ApiError) => `${error.code} ${error.message}`,
  )

test('a token is exchanged once, also after its key was deleted', async () => {
  const stage = await openStage()
  const expires = stage.now() + 20 * hour * 1000
  assert.equal(await stage.exchange('a', expires), hour)
  stage.forward(hour + 660)
  assert.equal((await stage.count()).keys, 0)
  for (const seconds of [10 * hour, expires / 1000 - stage.now() / 1000 - 10 * hour - 2]) {
    stage.forward(seconds)
    assert.equal(await reasonOf(stage.exchange('a', expires)), '400 the token was exchanged already; request a new one')
  }
  stage.forward(2)
  assert.equal(await reasonOf(stage.exchange('a', expires)), '401 the token has expired')
  await stage.close()
})

test('a key is deleted soon after its expiry, without a revocation', async () => {
  const stage = await openStage()
  await stage.exchange('a', stage.now() + 600_000)
  stage.forward(600 + 300)
  assert.deepEqual(await stage.count(), { keys: 1, revocations: 0 })
  stage.forward(360)
  assert.deepEqual(await stage.count(), { keys: 0, revocations: 0 })
  await stage.close()
})

test('a used token is on record for as long as its key exists, so the limit of records limits the keys', async () => {
  const stage = await openStage()
  await stage.exchange('a', stage.now() + 60_000)
  for (let waited = 0; (await stage.count()).keys > 0; waited += 30) {
    assert.ok(waited < hour, 'the key is never deleted')
    // A later token with the id, as an issuer could sign it.
    assert.match(await reasonOf(stage.exchange('a', stage.now() + 60_000)), /^400 /)
    stage.forward(30)
  }
  await stage.close()
})

test('a key is not longer than auth.maxKeyTTL', async () => {
  const stage = await openStage(600)
  assert.equal(await stage.exchange('a', stage.now() + hour * 1000), 600)
  await stage.close()
})
