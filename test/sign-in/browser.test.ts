// People sign in with a browser: sessions, cookies, sign-out, and pages.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { keys, openPeople, type PeopleStage, secretOf, teams } from './people-stage.ts'

suite('sign-in in the browser', () => {
  let stage: PeopleStage
  before(async () => {
    stage = await openPeople()
    await stage.ask('POST', teams, { metadata: { name: 'web' }, spec: { groups: ['corp:dev'] } })
  })
  after(() => stage.close())

  test('a person signs in, has the groups of the provider, and lands in the team', async () => {
    const browser = stage.browser()
    const landed = await browser.signIn('ada')
    assert.equal(landed.url.pathname, '/console/')
    const page = await browser.open('/auth/session')
    assert.equal(page.status, 200, page.text)
    assert.match(page.text, /You are signed in/)
    assert.match(page.text, /<dd>corp:ada<\/dd>/)
    const groups = await stage.groupsOf(secretOf(browser))
    for (const group of ['corp:dev', 'corp:ops', 'platform:team:web', 'platform:user:corp:ada'])
      assert.ok(groups.includes(group), `${group} in ${groups}`)
  })

  test('a session is an access key of type Login, without the tokens of the provider', async () => {
    const browser = stage.browser()
    await browser.signIn('bob')
    const { body } = await stage.ask('GET', `${keys}?fieldSelector=spec.user=corp:bob`)
    const [key] = body.items
    assert.equal(key.spec.type, 'Login')
    assert.equal(key.spec.ttl, 7 * 24 * 3600)
    assert.equal(key.spec.identity.userId, 'bob')
    assert.equal(key.spec.identity.connector, 'corp')
    assert.equal(key.spec.identity.email, 'bob@example.org')
    assert.deepEqual(key.spec.identity.groups, ['corp:dev'])
    assert.equal(key.spec.identity.connectorData, undefined)
    assert.ok(key.spec.identityRefresh)
  })

  test('the cookie works for the management API from the same origin only', async () => {
    const browser = stage.browser()
    await browser.signIn('ada')
    const path = `/kubernetes/management${teams}/web`
    assert.equal((await browser.call('GET', path)).status, 200)
    for (const site of ['cross-site', 'same-site', 'none']) {
      const { status, text } = await browser.call('GET', path, { headers: { 'sec-fetch-site': site } })
      assert.equal(status, 403)
      assert.equal(JSON.parse(text).details.causes[0].reason, 'CrossSite')
    }
    const both = await browser.call('GET', path, { headers: { authorization: `Bearer ${stage.server.adminKey}` } })
    assert.equal(both.status, 400)
  })

  test('sign-out deletes the key, clears the cookie and goes to the provider', async () => {
    const browser = stage.browser()
    await browser.signIn('ada')
    const secret = secretOf(browser)
    const cross = await browser.submit('/auth/logout', {}, { 'sec-fetch-site': 'cross-site' })
    assert.equal(cross.status, 403)
    const out = await browser.submit('/auth/logout', {})
    assert.equal(out.status, 303)
    assert.ok(out.headers.location?.startsWith(`${stage.provider.url}/session/end?`), out.headers.location)
    assert.equal(secretOf(browser), '')
    assert.equal((await stage.ask('GET', teams, undefined, secret)).status, 401)
  })

  test('a script that signs out learns where the provider ends its session', async () => {
    const browser = stage.browser()
    await browser.signIn('ada')
    const secret = secretOf(browser)
    const out = await browser.submit('/auth/logout', {}, { accept: 'application/json' })
    assert.equal(out.status, 200)
    const { location } = JSON.parse(out.text)
    assert.ok(location.startsWith(`${stage.provider.url}/session/end?`), location)
    assert.equal(secretOf(browser), '')
    assert.equal((await stage.ask('GET', teams, undefined, secret)).status, 401)
    const withKey = stage.browser()
    await withKey.submit('/auth/key', { key: stage.server.adminKey })
    const here = await withKey.submit('/auth/logout', {}, { accept: 'application/json' })
    assert.deepEqual([here.status, JSON.parse(here.text)], [200, {}], 'without a provider, there is no other page')
  })

  test('sign-out everywhere ends all sessions of the user', async () => {
    const [one, other] = [stage.browser(), stage.browser()]
    await one.signIn('ada')
    await other.signIn('ada')
    await one.submit('/auth/logout?everywhere=true', {})
    assert.equal((await stage.ask('GET', teams, undefined, secretOf(other))).status, 401)
  })

  test('the provider ends a session by back-channel logout, once', async () => {
    const browser = stage.browser()
    await browser.signIn('bob')
    const secret = secretOf(browser)
    assert.equal((await stage.groupsOf(secret)).includes('corp:dev'), true)
    const token = await stage.provider.logoutToken({ sub: 'bob' })
    const path = '/auth/backchannel-logout/corp'
    assert.equal((await stage.browser().submit(path, { logout_token: token }, { accept: '*/*' })).status, 200)
    await eventually('the session ends', async () => (await stage.ask('GET', teams, undefined, secret)).status === 401)
    assert.equal((await stage.browser().submit(path, { logout_token: token }, { accept: '*/*' })).status, 400)
    assert.equal((await stage.browser().submit(path, { logout_token: 'x' }, { accept: '*/*' })).status, 400)
  })

  test('an access key can be pasted, and the session is that key', async () => {
    const browser = stage.browser()
    const wrong = await browser.submit('/auth/key', { key: 'plat_wrong' })
    assert.equal(wrong.status, 401)
    assert.match(wrong.text, /<code>Unauthorized<\/code>/)
    const done = await browser.submit('/auth/key', { key: stage.server.adminKey })
    assert.equal(done.status, 303)
    assert.match((await browser.open('/auth/session')).text, /<dd>admin<\/dd>/)
    await browser.submit('/auth/logout', {})
    assert.equal((await stage.ask('GET', teams)).status, 200, 'the key stays valid')
  })

  test('pages have no script, and a strict policy', async () => {
    const page = await stage.browser().open('/auth/login')
    assert.match(page.text, /Sign in with corp/)
    assert.doesNotMatch(page.text, /<script/i)
    assert.match(String(page.headers['content-security-policy']), /^default-src 'none'; style-src 'sha256-/)
    assert.equal(page.headers['cache-control'], 'no-store')
    const hostile = await stage.browser().open('/auth/login?return=%22%3E%3Cscript%3Ealert(1)%3C/script%3E')
    assert.doesNotMatch(hostile.text, /<script/i)
  })
})

test('--auth-pasted-keys=false turns off sign-in with an access key', async () => {
  const stage = await openPeople({ args: ['--auth-pasted-keys=false'] })
  try {
    const browser = stage.browser()
    assert.doesNotMatch((await browser.open('/auth/login')).text, /Access key/)
    const page = await browser.submit('/auth/key', { key: stage.server.adminKey })
    assert.equal(page.status, 403)
    assert.match(page.text, /<code>PastedKeysDisabled<\/code>/)
    assert.equal(secretOf(browser), '')
    assert.equal((await browser.signIn('ada')).status, 200)
  } finally {
    await stage.close()
  }
})
