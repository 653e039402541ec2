// Direct-cluster tokens through the command line: how to create them, and alternatives for users who may not revoke.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openHome, signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn()
const ada = await openHome()
after(() => ada.close())

const made = await home.ok('create accesskey ada --for-user ada')
await ada.signIn(server, made.trim())

test('a user who may not revoke tokens gets a hint how to end those of their own key, and the hint works', async () => {
  const jti = '8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e'
  await ada.ok('create accesskey laptop')
  assert.match(
    await ada.fails(5, 'token revoke --key laptop --yes'),
    /cannot create resource "tokenrevocations".*; the key is yours; to invalidate all its tokens: platform rotate accesskey laptop or platform delete accesskey laptop\n$/,
  )
  for (const args of [`--jti ${jti}`, `--key-uid ${jti}`, '--user ada'])
    assert.match(
      await ada.fails(5, `token revoke ${args} --yes`),
      /cannot create .*; to invalidate all tokens of your own key: platform rotate accesskey NAME or platform delete accesskey NAME\n$/,
    )
  const { uid } = JSON.parse(await ada.ok('get accesskey laptop -o json')).metadata
  const revoked = async () => {
    const { items } = JSON.parse(await home.ok('get tokenrevocations -o json'))
    return items.some(({ spec }: { spec: { keyUID?: string } }) => spec.keyUID === uid)
  }
  assert.equal(await revoked(), false)
  await ada.ok('rotate accesskey laptop --yes')
  assert.equal(await revoked(), true)
  await ada.ok('delete accesskey laptop --yes')
})

test('the hint does not suggest actions that the user may not take', async () => {
  for (const args of ['--user grace', '--group front'])
    assert.match(await ada.fails(5, `token revoke ${args} --yes`), /at the cluster scope\n$/)
  const bounded = await ada.ok('create accesskey bounded --ttl 1h')
  const own = await openHome()
  await own.signIn(server, bounded.trim())
  assert.match(
    await own.fails(5, 'token revoke --key bounded --yes'),
    /; the key is yours; to invalidate all its tokens: platform delete accesskey bounded\n$/,
  )
  const narrow = await ada.ok('create accesskey narrow --scope-project shop')
  await own.ok('logout')
  await own.signIn(server, narrow.trim())
  assert.match(await own.fails(5, 'token revoke --user ada --yes'), /does not cover it\n$/)
  await own.close()
})
