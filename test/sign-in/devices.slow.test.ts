// Sign-in of the command line and of machines without a browser, over HTTP.

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import type { Browser } from './browser.ts'
import { keys, openPeople, type PeopleStage, secretOf, self } from './people-stage.ts'
import { signInAt } from './sign-in-at.ts'

const random = () => randomBytes(32).toString('base64url')

suite('sign-in of other devices', () => {
  let stage: PeopleStage
  let browser: Browser
  before(async () => {
    stage = await openPeople()
    browser = stage.browser()
    await browser.signIn('ada')
  })
  after(() => stage.close())

  const post = (path: string, body: object) => stage.browser().call('POST', path, { body })
  const userOf = async (key: string) =>
    (await stage.ask('POST', self, {}, key)).body.status?.userInfo?.username as string | undefined

  const start = (over: object = {}) => {
    const [state, verifier] = [random(), random()]
    const challenge = hash('sha256', verifier, 'base64url')
    const query = new URLSearchParams({ port: '40123', state, challenge, machine: 'ada@laptop', ...over })
    return { state, verifier, path: `/auth/cli?${query}` }
  }
  const confirm = async (path: string, decision = 'approve') => {
    const page = await browser.open(path)
    assert.equal(page.status, 200, page.text)
    const answer = await browser.submit('/auth/cli', { ...page.fields, decision })
    assert.equal(answer.status, 303, answer.text)
    return { page, location: new URL(answer.headers.location ?? '') }
  }

  suite('command line', () => {
    test('after a refused account, the way back leads to the same sign-in', async () => {
      stage.provider.accounts['zoe'] = { disabled: true }
      const { path } = start()
      const other = stage.browser()
      await other.open(path)
      const begun = `${stage.server.http}/auth/login/corp?return=${encodeURIComponent(path)}`
      const page = await other.open((await signInAt(begun, 'zoe', other.jar)).href)
      assert.equal(page.status, 403)
      const [, href = ''] = /class="button" href="([^"]+)"/.exec(page.text) ?? []
      assert.equal(new URL(href, `${stage.server.http}/auth/callback/corp`).searchParams.get('return'), path)
    })

    test('a confirmed login gives a key of its own, once, to the client with the verifier', async () => {
      const { path, state, verifier } = start()
      const { page, location } = await confirm(path)
      assert.match(page.text, /ada@laptop/)
      assert.match(String(page.headers['content-security-policy']), /form-action 'self' http:\/\/127\.0\.0\.1:40123/)
      assert.equal(`${location.origin}${location.pathname}`, 'http://127.0.0.1:40123/callback')
      assert.equal(location.searchParams.get('state'), state)
      const code = location.searchParams.get('code') ?? ''
      const { status, text } = await post('/auth/cli/token', { code, verifier })
      assert.equal(status, 200, text)
      const { key, name, user } = JSON.parse(text)
      assert.equal(user, 'corp:ada')
      assert.equal(await userOf(key), 'corp:ada')
      const stored = (await stage.ask('GET', `${keys}/${name}`)).body
      assert.equal(stored.spec.type, 'Login')
      assert.equal(stored.spec.displayName, 'ada@laptop')
      assert.match(stored.spec.parent, /^login-/)
      assert.equal((await post('/auth/cli/token', { code, verifier })).status, 400)
    })

    test('a wrong verifier uses up the code', async () => {
      const { path, verifier } = start()
      const { location } = await confirm(path)
      const code = location.searchParams.get('code') ?? ''
      assert.equal((await post('/auth/cli/token', { code, verifier: random() })).status, 400)
      assert.equal((await post('/auth/cli/token', { code, verifier })).status, 400)
    })

    test('a denied login sends an error to the port, and no code', async () => {
      for (const decision of ['deny', '']) {
        const { path, state } = start()
        const { location } = await confirm(path, decision)
        assert.equal(`${location.origin}${location.pathname}`, 'http://127.0.0.1:40123/callback')
        assert.deepEqual(Object.fromEntries(location.searchParams), { error: 'access_denied', state })
      }
      const audit = join(stage.server.directory, 'audit.log')
      await eventually('an audit event', async () =>
        readFileSync(audit, 'utf8').includes('"authentication.platform.sh/result":"CommandLineDenied"'),
      )
    })

    test('a stale page can be denied, but only from the pages of this server', async () => {
      const page = await browser.open(start().path)
      const fields = { ...page.fields, token: 'stale', decision: 'deny' }
      assert.equal((await browser.submit('/auth/cli', fields, { 'sec-fetch-site': 'cross-site' })).status, 403)
      const answer = await browser.submit('/auth/cli', fields)
      assert.match(String(answer.headers.location), /^http:\/\/127\.0\.0\.1:40123\/callback\?error=access_denied&/)
    })

    test('only a loopback port is redirected to', async () => {
      for (const over of [{ port: '80' }, { port: '70000' }, { port: '40123@evil.example' }, { state: 'x' }])
        assert.equal((await browser.open(start(over).path)).status, 400)
    })

    test('a confirmation is bound to the session and to the page', async () => {
      const page = await browser.open(start().path)
      const fields = { ...page.fields, decision: 'approve' }
      const changed = await browser.submit('/auth/cli', { ...fields, port: '40124' })
      assert.equal(changed.status, 403)
      assert.match(changed.text, /StaleConfirmation/)
      const other = stage.browser()
      await other.signIn('bob')
      assert.equal((await other.submit('/auth/cli', fields)).status, 403)
      assert.equal((await browser.submit('/auth/cli', fields, { 'sec-fetch-site': 'cross-site' })).status, 403)
    })

    test('a machine name is shown as text', async () => {
      const page = await browser.open(start({ machine: '<img src=x onerror=alert(1)>\u001b[31m"' }).path)
      assert.match(page.text, /&lt;img src=x onerror=alert\(1\)&gt;\[31m&quot;/)
      assert.doesNotMatch(page.text, /<img/)
    })

    test('without a session, the browser signs in first and comes back; a pasted key is not enough', async () => {
      const { path } = start()
      const login = await stage.browser().open(path)
      assert.equal(login.url.pathname, '/auth/login')
      assert.equal(login.url.searchParams.get('return'), path)
      const pasted = stage.browser()
      await pasted.submit('/auth/key', { key: stage.server.adminKey })
      assert.equal((await pasted.open(path)).url.pathname, '/auth/login')
      const fresh = stage.browser()
      const page = await fresh.signIn('bob', path)
      assert.match(page.text, /Sign in the command line\?/)
    })

    test('the key ends when the session is disabled before the exchange', async () => {
      const other = stage.browser()
      await other.signIn('bob')
      const { path, verifier } = start()
      const page = await other.open(path)
      const answer = await other.submit('/auth/cli', { ...page.fields, decision: 'approve' })
      const code = new URL(answer.headers.location ?? '').searchParams.get('code') ?? ''
      await other.submit('/auth/logout', {})
      assert.equal((await post('/auth/cli/token', { code, verifier })).status, 403)
    })
  })

  suite('device', () => {
    const begin = async () => {
      const { status, text } = await post('/auth/device/code', { machine: 'build-7' })
      assert.equal(status, 200, text)
      return JSON.parse(text) as { device_code: string; user_code: string; verification_uri: string }
    }
    const poll = async (code: string) => JSON.parse((await post('/auth/device/token', { device_code: code })).text)
    const decide = async (code: string, decision: string) => {
      const page = await browser.open(`/auth/device?user_code=${code.toLowerCase().replace('-', ' ')}`)
      assert.match(page.text, /build-7/)
      return browser.submit('/auth/device', { ...page.fields, decision })
    }

    test('an approved code gives a key, once', async () => {
      const { device_code: device, user_code: user, verification_uri: uri } = await begin()
      assert.match(user, /^[B-Z]{4}-[B-Z]{4}$/)
      assert.equal(uri, `${stage.server.http}/auth/device`)
      assert.equal((await decide(user, 'approve')).status, 200)
      const { key } = await poll(device)
      assert.equal(await userOf(key), 'corp:ada')
      assert.equal((await poll(device)).error, 'expired_token')
    })

    test('a code is pending, may not be polled too fast, and can be denied', async () => {
      const { device_code: device, user_code: user } = await begin()
      assert.equal((await poll(device)).error, 'authorization_pending')
      assert.equal((await poll(device)).error, 'slow_down')
      await decide(user, 'deny')
      const other = await begin()
      await decide(other.user_code, 'deny')
      assert.equal((await poll(other.device_code)).error, 'access_denied')
      assert.equal((await poll('unknown')).error, 'expired_token')
    })

    test('an unknown code is refused; the page warns', async () => {
      const page = await browser.open('/auth/device')
      assert.match(page.text, /they want to sign in as you/)
      const unknown = await browser.open('/auth/device?user_code=BBBB-BBBB')
      assert.equal(unknown.status, 404)
      assert.match(unknown.text, /href="device">Enter another code</)
    })

    test('a restart in between loses nothing', async () => {
      const { device_code: device, user_code: user } = await begin()
      await stage.server.restart()
      assert.equal((await decide(user, 'approve')).status, 200)
      await stage.server.restart()
      assert.equal(await userOf((await poll(device)).key), 'corp:ada')
    })
  })

  test('codes and keys are in no log', () => {
    assert.doesNotMatch(stage.server.said(), /plat_|eyJ/)
    assert.ok(secretOf(browser).startsWith('plat_'))
  })
})
