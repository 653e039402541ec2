// Disabled and deleted Users at a gateway, and Users of machines (D63).

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { must, ours, refused } from '../access/people.ts'
import { openTokenStage, type TokenStage } from '../access/token-gateway.ts'
import { entryOf, openSignIn } from './sign-in-stage.ts'
import { startIssuer } from './test-issuer.ts'

const users = `${ours}/users`

async function withStage(run: (stage: TokenStage) => Promise<void>): Promise<void> {
  const stage = await openTokenStage()
  try {
    await run(stage)
  } finally {
    await stage.close()
  }
}

suite('users at a gateway', () => {
  test('disabling a User ends its keys, tokens and streams at gateways, in the same commit', () =>
    withStage(async stage => {
      const ada = await stage.invite('ada')
      await must(stage.ask('POST', users, { metadata: { name: 'ada' } }))
      const token = await ada.mint()
      assert.deepEqual([await stage.status(token), await stage.status(ada.key)], [200, 200])
      const watches = [await stage.watch(token), await stage.watch(ada.key)]
      const disabled = await must(stage.ask('PATCH', `${users}/ada`, { spec: { disabled: true } }))
      const [revocation] = (await stage.revocations()).filter(({ spec }) => spec.users?.includes('ada'))
      assert.equal(revocation?.metadata.resourceVersion, disabled.metadata.resourceVersion)
      await Promise.all([stage.refused(token), stage.refused(ada.key), ...watches.map(({ ended }) => ended)])
      await must(stage.ask('PATCH', `${users}/ada`, { spec: { disabled: false } }))
      await stage.mintsAgain(ada)
      assert.equal(await stage.status(token), 401)
    }))

  test('deleting a User ends its keys, tokens and streams at gateways', () =>
    withStage(async stage => {
      const bob = await stage.invite('bob')
      await must(stage.ask('POST', users, { metadata: { name: 'bob' } }))
      const token = await bob.mint()
      const watch = await stage.watch(token)
      await must(stage.ask('DELETE', `${users}/bob`))
      await Promise.all([stage.refused(token), stage.refused(bob.key), watch.ended])
    }))
})

test('a disabled User cannot use tokens of an external issuer, and an open watch ends', async () => {
  const issuer = await startIssuer()
  const stage = await openSignIn([entryOf(issuer)])
  try {
    const token = await issuer.sign({ sub: 'robot' })
    assert.equal((await stage.whoami(token)).username, 'ci:robot')
    const events = stage.server.watch(`${ours}/teams`, { key: token })
    const ended = Array.fromAsync(events)
    const spec = { username: 'ci:robot', disabled: true }
    await must(stage.server.request('POST', users, { body: { metadata: { name: 'robot' }, spec } }))
    await refused(stage.ask(token), 401, /disabled/)
    await ended
    await must(stage.server.request('DELETE', `${users}/robot`))
    assert.equal((await stage.whoami(token)).username, 'ci:robot')
  } finally {
    await stage.close()
    await issuer.stop()
  }
})
