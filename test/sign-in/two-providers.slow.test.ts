// Two identity providers at one server: equal usernames, and answers of one that are sent to the other.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { closeAll } from '../support/close-all.ts'
import { eventually } from '../support/wire.ts'
import { openPeople, type PeopleStage, secretOf, self } from './people-stage.ts'
import { signInAt } from './sign-in-at.ts'
import { loginOf, startProvider, type TestProvider } from './test-provider.ts'

suite('two providers', () => {
  let stage: PeopleStage
  let other: TestProvider
  before(async () => {
    stage = await openPeople()
    other = await startProvider()
    other.accounts['ada'] = { groups: ['dev', 'guests'] }
    await other.configure({ redirectUris: [`${stage.server.http}/auth/callback/guest`] })
    // The test provider has the same client and secret everywhere.
    const secret = { clientSecretEnv: undefined, clientSecretFile: 'client-secret' }
    stage.write([loginOf(stage.provider, secret), loginOf(other, { ...secret, name: 'guest' })])
    await eventually('both are offered', async () => {
      const { text } = await stage.browser().call('GET', '/auth/providers')
      return JSON.parse(text).providers.length === 2
    })
  })
  after(() =>
    closeAll(
      () => stage.close(),
      () => other.stop(),
    ),
  )

  const begin = (provider: string) => {
    const browser = stage.browser()
    return signInAt(`${stage.server.http}/auth/login/${provider}`, 'ada', browser.jar).then(callback => ({
      browser,
      callback,
    }))
  }
  const userOf = async (provider: string) => {
    const { browser, callback } = await begin(provider)
    await browser.open(callback.href)
    return (await stage.ask('POST', self, {}, secretOf(browser))).body.status.userInfo
  }

  test('equal usernames are two users, with the groups of their own provider', async () => {
    const [here, there] = [await userOf('corp'), await userOf('guest')]
    assert.deepEqual([here.username, there.username], ['corp:ada', 'guest:ada'])
    const own = (groups: readonly string[]) => groups.filter(group => /^(corp|guest):/.test(group)).sort()
    assert.deepEqual(own(here.groups), ['corp:dev', 'corp:ops'])
    assert.deepEqual(own(there.groups), ['guest:dev', 'guest:guests'])
    const { items } = (await stage.ask('GET', '/apis/management.platform.sh/v1/users')).body
    const names = items.map(({ spec }: { spec: { username: string } }) => spec.username)
    assert.deepEqual(names.sort(), ['corp:ada', 'guest:ada'])
  })

  test('an answer of one provider is not accepted as that of the other', async () => {
    for (const [from, to] of [
      ['corp', 'guest'],
      ['guest', 'corp'],
    ] as const) {
      const { browser, callback } = await begin(from)
      const before = [stage.provider.requests['/token'], other.requests['/token']]
      const page = await browser.open(callback.href.replace(`/callback/${from}`, `/callback/${to}`))
      assert.equal(page.status, 400)
      assert.match(page.text, /<code>StateMismatch<\/code>/)
      assert.equal(secretOf(browser), '')
      assert.deepEqual([stage.provider.requests['/token'], other.requests['/token']], before, 'the code is not sent')
    }
  })

  test('a logout token of one provider does not end sessions of the other', async () => {
    const { browser, callback } = await begin('corp')
    await browser.open(callback.href)
    const token = await stage.provider.logoutToken({ sub: 'ada' })
    const refused = await stage.browser().submit('/auth/backchannel-logout/guest', { logout_token: token })
    assert.equal(refused.status, 400)
    assert.equal((await stage.ask('POST', self, {}, secretOf(browser))).status, 201)
  })
})
