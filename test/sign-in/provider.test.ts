// The client of a provider: sign-in, mapping, refresh and logout against a real provider.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { configHeader } from './config-problems.ts'
import { failureOf, openProviderStage, type ProviderStage, redirectUri } from './provider-stage.ts'
import { loginOf, startProvider, type TestProvider } from './test-provider.ts'

let at: TestProvider
let stage: ProviderStage

/** Replaces the stage by one with another configuration, which is faster than a reload. */
async function open(login: readonly object[]): Promise<void> {
  stage?.stop()
  stage = await openProviderStage(at, login)
}

before(async () => {
  at = await startProvider({ redirectUris: [redirectUri], postLogoutRedirectUris: ['http://127.0.0.1/'] })
  await open([loginOf(at)])
})
after(async () => {
  stage?.stop()
  await at.stop()
})
beforeEach(() => {
  at.faults = {}
  at.accounts['ada'] = { groups: ['dev', 'ops'], email: 'ada@example.org', name: 'Ada Lovelace' }
})

describe('sign-in', () => {
  test('gives the person with the prefix of the entry', async () => {
    const { refreshToken, idToken, sid, ...person } = await stage.signIn()
    assert.deepEqual(person, {
      issuer: at.url,
      subject: 'ada',
      username: 'corp:ada',
      preferredUsername: 'Ada Lovelace',
      email: 'ada@example.org',
      emailVerified: true,
      groups: ['corp:dev', 'corp:ops'],
    })
    assert.ok(refreshToken && idToken)
    assert.deepEqual(at.sessions['ada']?.includes(sid ?? ''), true)
  })

  test('requests the default scopes, PKCE and the hint', async () => {
    const request = { redirectUri, state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43), loginHint: 'ada' }
    const url = await stage.provider.authorizationUrl(request)
    const { scope, code_challenge_method, login_hint, state, nonce } = Object.fromEntries(url.searchParams)
    assert.equal(scope, 'openid profile email offline_access')
    assert.deepEqual([code_challenge_method, login_hint, state, nonce], ['S256', 'ada', 's', 'n'])
    assert.ok(!url.href.includes('vvv'), 'the verifier stays here')
    await open([loginOf(at, { scopes: ['email'] })])
    const other = await stage.provider.authorizationUrl(request)
    assert.equal(other.searchParams.get('scope'), 'openid email')
  })

  test('works for a public client', async () => {
    await open([loginOf(at, { clientID: 'public', clientSecretEnv: undefined })])
    assert.equal((await stage.signIn()).username, 'corp:ada')
  })

  test('keeps only groups that match a pattern, before the prefix', async () => {
    at.accounts['ada'] = { groups: [...Array.from({ length: 9_990 }, (_, index) => `mail-${index}`), 'app-a', 'app-b'] }
    await open([loginOf(at, { groupPatterns: ['app-?', 'corp:*'] })])
    assert.deepEqual((await stage.signIn()).groups, ['corp:app-a', 'corp:app-b'])
  })

  test('drops reserved groups, and has none without the claim', async () => {
    const mapped = { username: { claim: 'sub' }, groups: { claim: 'groups', prefix: '' } }
    await open([loginOf(at, { claimMappings: mapped })])
    at.accounts['ada'] = { groups: ['system:masters', 'platform:team:a', 'dev'] }
    assert.deepEqual((await stage.signIn()).groups, ['dev'])
    at.accounts['ada'] = {}
    assert.deepEqual((await stage.signIn()).groups, [])
  })

  test('takes an e-mail as username only if it is verified', async () => {
    await open([loginOf(at, { claimMappings: { username: { claim: 'email' } } })])
    assert.equal((await stage.signIn()).username, 'corp:ada@example.org')
    at.accounts['ada'] = { email: 'ada@example.org', emailVerified: false }
    assert.match(await failureOf(stage.signIn()), /^Rejected: .*not verified/)
  })

  test('does not let the empty prefix give names of other entries', async () => {
    const unprefixed = loginOf(at, {
      claimMappings: { username: { claim: 'sub', prefix: '' }, groups: { claim: 'groups', prefix: '' } },
    })
    const partner = loginOf(at, { name: 'partner', issuer: { url: 'http://127.0.0.1:9' }, clientID: 'x' })
    await open([unprefixed, partner])
    for (const name of ['partner:bob', 'system:admin', 'platform:x']) {
      at.accounts[name] = {}
      assert.match(await failureOf(stage.signIn(name)), /^Rejected: .*(prefix of another entry|reserved)/)
    }
    at.accounts['ada'] = { groups: ['partner:dev', 'dev'] }
    assert.deepEqual((await stage.signIn()).groups, ['dev'])
  })

  test('follows the rules of the entry', async () => {
    const rule = { expression: 'claims.?hd.orValue("") == "example.org"', message: 'only example.org' }
    await open([loginOf(at, { claimValidationRules: [rule] })])
    assert.match(await failureOf(stage.signIn()), /^Rejected: .*only example\.org/)
    at.accounts['ada'] = { claims: { hd: 'example.org' } }
    assert.equal((await stage.signIn()).username, 'corp:ada')
  })

  test('reads userinfo if the entry says so, for the same subject only', async () => {
    const dropped = { tokens: { claims: { groups: undefined } } }
    await open([loginOf(at)])
    at.faults = dropped
    assert.deepEqual((await stage.signIn()).groups, [])
    await open([loginOf(at, { userInfo: true })])
    assert.deepEqual((await stage.signIn()).groups, ['corp:dev', 'corp:ops'])
    at.faults = { tokens: { claims: { sub: 'eve' } } }
    assert.match(await failureOf(stage.signIn()), /^InvalidResponse: .*sub/)
  })
})

describe('refresh', () => {
  before(() => open([loginOf(at)]))

  test('reads the groups again, and returns the next refresh token', async () => {
    const { refreshToken = '' } = await stage.signIn()
    at.accounts['ada'] = { groups: ['ops'] }
    const next = await stage.provider.refresh(refreshToken, { subject: 'ada' })
    assert.deepEqual(next.groups, ['corp:ops'])
    assert.notEqual(next.refreshToken, refreshToken)
    const last = await stage.provider.refresh(next.refreshToken ?? '', { subject: 'ada' })
    assert.equal(last.username, 'corp:ada')
  })

  test('keeps the refresh token of a provider that does not rotate', async () => {
    const { refreshToken = '' } = await stage.signIn()
    at.faults = { response: { refresh_token: undefined } }
    assert.equal((await stage.provider.refresh(refreshToken, { subject: 'ada' })).refreshToken, refreshToken)
  })

  test('of a disabled account, or with a used token, is InvalidGrant', async () => {
    const { refreshToken = '' } = await stage.signIn()
    at.accounts['ada'] = { disabled: true }
    const refresh = () => failureOf(stage.provider.refresh(refreshToken, { subject: 'ada' }), [refreshToken])
    assert.match(await refresh(), /^InvalidGrant: provider corp: returned invalid_grant/)
    at.accounts['ada'] = {}
    const { refreshToken: other = '' } = await stage.signIn()
    const { refreshToken: next = '' } = await stage.provider.refresh(other, { subject: 'ada' })
    assert.match(await failureOf(stage.provider.refresh(other, { subject: 'ada' }), [other]), /^InvalidGrant/)
    assert.match(await failureOf(stage.provider.refresh(next, { subject: 'ada' }), [next]), /^InvalidGrant/)
  })

  test('of an unreachable or failing provider is Unavailable, and works later', async () => {
    const { refreshToken = '' } = await stage.signIn()
    const refresh = () => stage.provider.refresh(refreshToken, { subject: 'ada' })
    for (const status of [500, 503, 429]) {
      at.faults = { status, only: '/token' }
      assert.match(await failureOf(refresh(), [refreshToken]), new RegExp(`^Unavailable: .*returned ${status}`))
    }
    at.faults = {}
    await at.stop()
    assert.match(await failureOf(refresh(), [refreshToken]), /^Unavailable: .*connection refused/)
    await at.start()
    assert.equal((await refresh()).username, 'corp:ada')
  })

  test('with a lost answer is Unavailable; the token is then used up', async () => {
    const { refreshToken = '' } = await stage.signIn()
    const refresh = () => failureOf(stage.provider.refresh(refreshToken, { subject: 'ada' }), [refreshToken])
    at.faults = { loseTokens: 1 }
    assert.match(await refresh(), /^Unavailable/)
    assert.match(await refresh(), /^InvalidGrant/)
  })

  test('rejects the token of another person', async () => {
    const { refreshToken = '' } = await stage.signIn()
    const refresh = stage.provider.refresh(refreshToken, { subject: 'eve' })
    assert.match(await failureOf(refresh, [refreshToken]), /^InvalidResponse: .*another person/)
  })

  test('without an ID token needs userinfo', async () => {
    const { refreshToken = '' } = await stage.signIn()
    at.faults = { response: { id_token: undefined } }
    const refresh = (token: string) => stage.provider.refresh(token, { subject: 'ada' })
    assert.match(await failureOf(refresh(refreshToken)), /^InvalidResponse: .*no ID token; set userInfo/)
    await open([loginOf(at, { userInfo: true })])
    at.faults = {}
    const { refreshToken: other = '' } = await stage.signIn()
    at.faults = { response: { id_token: undefined } }
    const person = await refresh(other)
    assert.deepEqual([person.groups, person.idToken], [['corp:dev', 'corp:ops'], ''])
    at.faults = {}
    await open([loginOf(at)])
  })
})

describe('logout', () => {
  before(() => open([loginOf(at)]))

  test('goes to the provider, with the ID token as hint', async () => {
    const { idToken } = await stage.signIn()
    const url = await stage.provider.logoutUrl({ idToken, returnTo: 'http://127.0.0.1/' })
    assert.equal(url?.pathname, '/session/end')
    assert.equal(url.searchParams.get('id_token_hint'), idToken)
    assert.equal(url.searchParams.get('client_id'), 'platform')
    assert.equal(url.searchParams.get('post_logout_redirect_uri'), 'http://127.0.0.1/')
  })

  test('accepts a logout token of the provider', async () => {
    const token = await at.logoutToken({ sub: 'ada', sid: 'one' })
    const { jti, expires, ...who } = await stage.provider.verifyLogoutToken(token)
    assert.deepEqual(who, { sid: 'one', subject: 'ada' })
    assert.ok(jti && expires > Date.now() / 1000)
    assert.deepEqual((await stage.provider.verifyLogoutToken(await at.logoutToken({ sid: 'one' }))).sid, 'one')
    const plain = await at.logoutToken({ sub: 'ada' }, { header: { typ: 'JWT' } })
    assert.equal((await stage.provider.verifyLogoutToken(plain)).subject, 'ada')
  })

  test('rejects every other token', async () => {
    const now = Math.floor(Date.now() / 1000)
    const { idToken } = await stage.signIn()
    const cases: readonly (readonly [string, Promise<string> | string])[] = [
      ['an ID token', idToken],
      ['another audience', at.logoutToken({ sub: 'ada', aud: 'other' })],
      ['another issuer', at.logoutToken({ sub: 'ada', iss: 'https://evil.example' })],
      ['a nonce', at.logoutToken({ sub: 'ada', nonce: 'n' })],
      ['neither sid nor sub', at.logoutToken({})],
      ['no jti', at.logoutToken({ sub: 'ada', jti: undefined })],
      ['no events', at.logoutToken({ sub: 'ada', events: {} })],
      ['no iat', at.logoutToken({ sub: 'ada', iat: undefined })],
      ['no exp', at.logoutToken({ sub: 'ada', exp: undefined })],
      ['an old one', at.logoutToken({ sub: 'ada', iat: now - 130, exp: now + 600 })],
      ['an expired one', at.logoutToken({ sub: 'ada', exp: now - 10 })],
      ['a future one', at.logoutToken({ sub: 'ada', iat: now + 60 })],
      ['another type', at.logoutToken({ sub: 'ada' }, { header: { typ: 'at+jwt' } })],
      ['none', at.logoutToken({ sub: 'ada' }, { algorithm: 'none' })],
      ['HMAC', at.logoutToken({ sub: 'ada' }, { algorithm: 'HS256' })],
      ['a foreign key', at.logoutToken({ sub: 'ada' }, { foreignKey: true })],
      ['a long one', at.logoutToken({ sub: 'ada', more: 'x'.repeat(20_000) })],
      ['no token', 'logout'],
    ]
    for (const [what, token] of cases)
      assert.match(await failureOf(stage.provider.verifyLogoutToken(await token)), /^InvalidResponse/, what)
  })
})

describe('a reload', () => {
  test('takes a new file whole or not at all', async () => {
    await open([loginOf(at)])
    const { provider } = stage
    await stage.use(`${configHeader}login: [{ name: other }]`, 'auth config reload failed, keeping previous')
    assert.equal(stage.provider, provider)
    await stage.use([loginOf(at, { displayName: 'Example', lifetimes: { refreshAfter: '1s', idle: '1h' } })])
    assert.equal(stage.provider.config.displayName, 'Example')
    assert.deepEqual(stage.provider.config.lifetimes, {
      refreshAfter: 1,
      refreshGrace: 3600,
      idle: 3600,
      max: 604_800,
    })
    assert.equal((await stage.signIn()).username, 'corp:ada')
  })

  test('follows the file of the client secret', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'platform-secret-'))
    const clientSecretFile = join(directory, 'secret')
    writeFileSync(clientSecretFile, 'wrong')
    await open([loginOf(at, { clientSecretEnv: undefined, clientSecretFile })])
    assert.match(await failureOf(stage.signIn()), /^InvalidResponse: .*invalid_client/)
    writeFileSync(clientSecretFile, `${at.secret}\n`)
    await eventually('the new secret', async () => stage.log().includes('auth config reloaded'))
    assert.equal((await stage.signIn()).username, 'corp:ada')
    rmSync(directory, { recursive: true })
  })
})
