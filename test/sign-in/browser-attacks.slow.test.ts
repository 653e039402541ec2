// Attacks on sign-in in the browser, and faults of the provider on the way.

import assert from 'node:assert/strict'
import { after, before, beforeEach, suite, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { keys, openPeople, type PeopleStage, secretOf, teams } from './people-stage.ts'
import { signInAt } from './sign-in-at.ts'

suite('attacks on sign-in in the browser', () => {
  let stage: PeopleStage
  before(async () => {
    stage = await openPeople()
  })
  after(() => stage.close())
  beforeEach(() => {
    stage.provider.faults = {}
  })

  const login = (query = '') => `${stage.server.http}/auth/login/corp${query}`
  /** The failed sign-ins with a reason, in the metrics. */
  const failures = async (reason: string) => {
    const headers = { Authorization: `Bearer ${stage.server.adminKey}` }
    const text = await (await fetch(`${stage.server.http}/metrics`, { headers })).text()
    const line = new RegExp(`^platform_sign_ins_total{provider="corp",result="${reason}"} (\\d+)$`, 'm')
    return Number(line.exec(text)?.[1] ?? 0)
  }
  const reasonOf = (text: string) => /Code: <code>(\w+)<\/code>/.exec(text)?.[1]

  test('a callback in another browser signs nobody in', async () => {
    const attacker = stage.browser()
    const callback = await signInAt(login(), 'bob', attacker.jar)
    const victim = stage.browser()
    const page = await victim.open(callback.href)
    assert.equal(page.status, 400)
    assert.equal(reasonOf(page.text), 'StateMismatch')
    assert.equal(secretOf(victim), '')
  })

  test('a callback works once, also if the provider accepts its code twice', async () => {
    for (const [reuseLeeway, reason] of [
      [-1, 'InvalidGrant'],
      [60, 'StateMismatch'],
    ] as const) {
      stage.provider.faults = { reuseLeeway }
      const browser = stage.browser()
      const callback = await signInAt(login(), 'ada', browser.jar)
      const copy = new Map([...browser.jar].map(([origin, cookies]) => [origin, new Map(cookies)]))
      assert.equal((await browser.open(callback.href)).status, 200)
      browser.jar.clear()
      for (const [origin, cookies] of copy) browser.jar.set(origin, cookies)
      const before = await failures(reason)
      const again = await browser.open(callback.href)
      assert.equal(await failures(reason), before + 1)
      assert.equal(reasonOf(again.text), reason, again.text)
      assert.equal(secretOf(browser), '')
    }
  })

  test('a forged or foreign login cookie is refused', async () => {
    for (const cookie of ['x', 'sealed:v1:a:AAAA', '%E0%A4%A', 'a'.repeat(20_000)]) {
      const browser = stage.browser()
      const callback = await signInAt(login(), 'ada', browser.jar)
      browser.jar.get(stage.server.http)?.set('__Host-platform-login', cookie)
      const page = await browser.open(callback.href)
      assert.ok([400, 431].includes(page.status), String(page.status))
      assert.equal(secretOf(browser), '')
    }
    assert.doesNotMatch(stage.server.said(), /ALARM/, 'anybody can send a cookie')
  })

  test('the state of another provider is refused', async () => {
    const browser = stage.browser()
    const callback = await signInAt(login(), 'ada', browser.jar)
    const page = await browser.open(callback.href.replace('/callback/corp', '/callback/other'))
    assert.equal(page.status, 404)
    assert.equal(reasonOf(page.text), 'UnknownProvider')
  })

  test('no redirect leaves the server', async () => {
    for (const back of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      'javascript:alert(1)',
      '/a\r\nb: c',
    ]) {
      const browser = stage.browser()
      const page = await browser.signIn('ada', back)
      assert.equal(page.url.pathname, '/console/', back)
      assert.equal(page.url.origin, stage.server.http)
    }
  })

  test('an error of the provider is shown as text, with a code', async () => {
    const browser = stage.browser()
    const callback = await signInAt(login(), 'ada', browser.jar)
    const state = callback.searchParams.get('state') ?? ''
    const query = new URLSearchParams({ state, error: 'access_denied', error_description: '<script>alert(1)</script>' })
    const page = await browser.open(`/auth/callback/corp?${query}`)
    assert.ok(page.status >= 400)
    assert.doesNotMatch(page.text, /<script/)
    assert.ok(reasonOf(page.text))
  })

  for (const [name, faults, reason] of [
    ['a wrong audience', { tokens: { claims: { aud: 'other' } } }, 'InvalidResponse'],
    ['a wrong nonce', { tokens: { claims: { nonce: 'other' } } }, 'InvalidResponse'],
    ['an unsigned token', { tokens: { algorithm: 'none' } }, 'InvalidResponse'],
    ['a provider that fails', { status: 503, only: '/token' }, 'Unavailable'],
  ] as const)
    test(`${name} signs nobody in, and the log says why`, async () => {
      const browser = stage.browser()
      const callback = await signInAt(login(), 'ada', browser.jar)
      stage.provider.faults = faults as typeof stage.provider.faults
      const page = await browser.open(callback.href)
      assert.equal(reasonOf(page.text), reason, page.text)
      assert.equal(secretOf(browser), '')
      await eventually('a log line', async () => stage.server.output().includes(`"result":"${reason}"`))
      assert.doesNotMatch(stage.server.output(), /eyJ/)
    })

  test('a session cookie of another site, or sent twice, does not authenticate', async () => {
    const browser = stage.browser()
    await browser.signIn('ada')
    const path = `/kubernetes/management${teams}`
    const noSite = await browser.call('POST', path, {
      body: { metadata: { name: 'x' } },
      headers: { 'sec-fetch-site': '', 'sec-fetch-mode': '', origin: 'https://evil.example' },
    })
    assert.equal(noSite.status, 403)
    const twice = await browser.call('GET', path, {
      headers: {
        cookie: `${Object.entries(browser.cookies()).map(([name, value]) => `${name}=${value}; ${name}=${value}`)}`,
      },
    })
    assert.equal(twice.status, 401)
  })

  test('a form of another site cannot sign a person in with its own key', async () => {
    const browser = stage.browser()
    const page = await browser.submit('/auth/key', { key: stage.server.adminKey }, { 'sec-fetch-site': 'cross-site' })
    assert.equal(page.status, 403)
    assert.equal(secretOf(browser), '')
  })

  test('a person with 10,000 groups, or an account with a reserved name, is refused with advice', async () => {
    stage.provider.accounts['many'] = { groups: Array.from({ length: 10_000 }, (_, index) => `g${index}`) }
    stage.provider.accounts['over'] = { claims: { _claim_names: { groups: 'src1' } } }
    for (const account of ['many', 'over']) {
      const browser = stage.browser()
      const callback = await signInAt(login(), account, browser.jar)
      const page = await browser.open(callback.href)
      assert.equal(page.status, 403, page.text)
      assert.match(page.text, /groups/)
      assert.equal(secretOf(browser), '')
    }
  })

  test('an unknown method, path or body is an error, not a crash', async () => {
    const browser = stage.browser()
    assert.equal((await browser.call('PUT', '/auth/login')).status, 405)
    assert.equal((await browser.call('GET', '/auth/nothing')).status, 404)
    assert.equal((await browser.call('GET', '/auth/login/%2e%2e')).status, 404)
    assert.equal((await browser.call('POST', '/auth/cli/token', { body: 'x' })).status, 400)
    const large = await browser.call('POST', '/auth/cli/token', { body: { code: 'x'.repeat(40_000) } })
    assert.equal(large.status, 413)
    assert.equal((await browser.submit('/auth/backchannel-logout/corp', { logout_token: 'x' })).status, 400)
  })

  test('one person has at most 50 sessions; the oldest ends', async () => {
    stage.provider.accounts['carl'] = {}
    const first = stage.browser()
    await first.signIn('carl')
    const jar = stage.browser()
    for (let count = 0; count < 50; count++) await jar.signIn('carl')
    const { body } = await stage.ask('GET', `${keys}?fieldSelector=spec.user=corp:carl`)
    assert.equal(body.items.length, 50)
    assert.equal((await stage.ask('GET', teams, undefined, secretOf(first))).status, 401)
  })
})

suite('limits of sign-in', () => {
  let stage: PeopleStage
  before(async () => {
    stage = await openPeople({ args: ['--limits-auth-total', '20'] })
  })
  after(() => stage.close())

  test('anonymous requests are limited, the API is not', async () => {
    const browser = stage.browser()
    const codes: number[] = []
    for (let count = 0; count < 25; count++) codes.push((await browser.open('/auth/login')).status)
    assert.equal(codes.filter(code => code === 200).length, 20)
    const page = await browser.open('/auth/login')
    assert.equal(page.status, 429)
    assert.ok(Number(page.headers['retry-after']) > 0)
    assert.equal((await stage.ask('GET', teams)).status, 200)
  })
})
