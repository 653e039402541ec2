// `login[]` of auth.yaml: every problem with its line, and the rules that keep names of providers and issuers apart.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stringify } from 'yaml'
import { configHeader, problemsOf } from './config-problems.ts'

type Entry = { readonly [field: string]: unknown }
const login = (over: Entry = {}): Entry => ({
  name: 'corp',
  issuer: { url: 'https://login.example.org' },
  clientID: 'platform',
  claimMappings: { username: { claim: 'preferred_username' } },
  ...over,
})
const jwt = (over: Entry = {}): Entry => ({
  name: 'ci',
  issuer: { url: 'https://ci.example.org', audiences: ['https://platform.example.org'] },
  claimMappings: { username: { claim: 'sub' } },
  ...over,
})
const fileOf = (config: { readonly login?: readonly Entry[]; readonly jwt?: readonly Entry[] }) =>
  configHeader + stringify(config)
const problems = (...entries: readonly Entry[]) => problemsOf(fileOf({ login: entries }))
const second = (over: Entry = {}) =>
  login({ name: 'partner', issuer: { url: 'https://partner.example.org' }, clientID: 'two', ...over })
const named = (username: Entry) => ({ claimMappings: { username: { claim: 'sub', ...username } } })

describe('platform config check', () => {
  test('accepts a provider with all fields, without contact to it', async () => {
    const text = fileOf({
      login: [
        login({
          displayName: 'Example Corp',
          clientSecretFile: 'secret',
          scopes: ['openid', 'groups'],
          userInfo: true,
          claimValidationRules: [{ expression: 'claims.hd == "example.org"', message: 'other domain' }],
          claimMappings: {
            username: { expression: 'claims.sub', prefix: '' },
            groups: { claim: 'groups', prefix: 'corp/' },
            displayName: { claim: 'name' },
            email: { expression: 'claims.?mail.orValue("")' },
          },
          groupPatterns: ['platform-*', 'team-?'],
          lifetimes: { refreshAfter: '5m', refreshGrace: '0', idle: '1h', max: '1d' },
        }),
        second({ clientSecretEnv: 'PARTNER_SECRET' }),
      ],
      jwt: [jwt()],
    })
    const found = await problemsOf(text, { files: { secret: 'hush\n' }, env: { PARTNER_SECRET: 'hush' } })
    assert.deepEqual(found, [])
    assert.deepEqual(await problems(login()), [], 'a public client needs no secret')
  })

  test('reports all problems, each with its line', async () => {
    const text = `${configHeader}login:
  - name: platform
    displayName: ''
    issuer:
      url: http://login.example.org
      certificateAuthority: none
    clientID: ''
    clientSecretFile: secret
    clientSecretEnv: SECRET
    scopes: ['a b']
    claimMappings:
      username: { claim: sub, expression: claims.sub }
      displayName: {}
      grups: { claim: groups }
    groupPatterns: ['']
    lifetimes:
      refreshAfter: 5
      idle: 8d
      max: 1w
  - name: b_c
    issuer: { url: 'https://b.example.org', audiences: [a] }
    clientID: c
    clientSecretFile: none
    claimMappings:
      username: { claim: sub, prefix: 'b' }
    lifetimes: { refreshAfter: 10 minutes, max: '0' }
`
    const expected = [
      /^4:\d+: login\[0\]\.name must not be platform/,
      /^5:\d+: login\[0\]\.displayName requires a value/,
      /^7:\d+: login\[0\]\.issuer\.url must be an https URL/,
      /^8:\d+: login\[0\]\.issuer\.certificateAuthority does not contain a PEM certificate/,
      /^9:\d+: login\[0\]\.clientID requires a value/,
      /^11:\d+: login\[0\]\.clientSecretEnv cannot be combined with clientSecretFile/,
      /^12:\d+: login\[0\]\.scopes\[0\] must be a scope without blanks/,
      /^14:\d+: login\[0\]\.claimMappings\.username requires either claim or expression/,
      /^15:\d+: login\[0\]\.claimMappings\.displayName requires either claim or expression/,
      /^16:\d+: unknown key login\[0\]\.claimMappings\.grups.*groups/,
      /^17:\d+: login\[0\]\.groupPatterns\[0\] requires a value/,
      /^19:\d+: login\[0\]\.lifetimes\.refreshAfter must be a string/,
      /^20:\d+: login\[0\]\.lifetimes\.idle must not be longer than max/,
      /^22:\d+: login\[1\]\.name must be a DNS label/,
      /^23:\d+: unknown key login\[1\]\.issuer\.audiences/,
      /^25:\d+: login\[1\]\.clientSecretFile: .*none/,
      /^27:\d+: login\[1\]\.claimMappings\.username\.prefix must end with a separator/,
      /^28:\d+: login\[1\]\.lifetimes\.refreshAfter must be a duration such as 10m/,
      /^28:\d+: login\[1\]\.lifetimes\.max must be greater than zero/,
    ]
    const found = await problemsOf(text, { files: { secret: 'hush' }, env: { SECRET: 'hush' } })
    assert.equal(found.length, expected.length, found.join('\n'))
    for (const [index, pattern] of expected.entries()) assert.match(found[index] ?? '', pattern)
  })

  test('reports a client secret that is missing or empty, and does not show one', async () => {
    const one = fileOf({ login: [login({ clientSecretEnv: 'SECRET' })] })
    assert.match((await problemsOf(one)).join(), /login\[0\]\.clientSecretEnv: SECRET is not set/)
    const two = fileOf({ login: [login({ clientSecretFile: 'secret' })] })
    assert.match((await problemsOf(two, { files: { secret: '\n' } })).join(), /clientSecretFile: .*secret is empty/)
    const control = await problemsOf(two, { files: { secret: 'hush\u0000hush' } })
    assert.match(control.join(), /clientSecretFile: .*control characters/)
    assert.doesNotMatch(control.join(), /hush/)
  })

  test('rejects names that another entry has, of either list', async () => {
    assert.match((await problems(login(), second({ name: 'corp' }))).join(), /login\[1\]\.name: duplicate value "corp"/)
    const both = await problemsOf(fileOf({ login: [login()], jwt: [jwt({ name: 'corp' })] }))
    assert.match(both.join(), /jwt\[0\]\.name: duplicate value "corp"/)
    const same = await problems(login(), second({ issuer: { url: 'https://login.example.org' } }))
    assert.match(same.join(), /login\[1\]\.issuer\.url: duplicate value/)
  })

  test('allows an issuer in login and jwt, but not with the client ID as audience', async () => {
    const shared = (audience: string) =>
      problemsOf(
        fileOf({
          login: [login()],
          jwt: [jwt({ issuer: { url: 'https://login.example.org', audiences: [audience] } })],
        }),
      )
    assert.deepEqual(await shared('https://platform.example.org'), [])
    assert.match((await shared('platform')).join(), /jwt\[0\]\.issuer\.audiences\[0\] .*clientID of login\[0\]/)
  })

  test('allows one empty prefix, and no prefix that begins with another', async () => {
    assert.deepEqual(await problems(login(named({ prefix: '' })), second()), [])
    const two = await problems(login(named({ prefix: '' })), second(named({ prefix: '' })))
    assert.match(two.join(), /login\[1\]\.claimMappings\.username\.prefix: only one entry .*empty prefix/)
    assert.match((await problems(login(), second(named({ prefix: 'corp:x:' })))).join(), /prefix of login\[0\]/)
    const machine = { claimMappings: { username: { claim: 'sub', prefix: 'corp:' } } }
    const both = await problemsOf(fileOf({ login: [login()], jwt: [jwt(machine)] }))
    assert.match(both.join(), /jwt\[0\]\.claimMappings\.username\.prefix: .*begins with the prefix of login\[0\]/)
    for (const prefix of ['system:', 'platform:team:', 'a b:', 'x'])
      assert.equal((await problems(login(named({ prefix })))).length, 1, prefix)
  })

  test('requires a look at email_verified for an e-mail as username', async () => {
    const mapped = (expression: string) => problems(login({ claimMappings: { username: { expression } } }))
    assert.match((await mapped('claims.email')).join(), /claims\.email_verified/)
    assert.deepEqual(await mapped('claims.?email_verified.orValue(false) == true ? claims.email : claims.sub'), [])
  })

  test('limits entries, patterns and lifetimes', async () => {
    const many = Array.from({ length: 64 }, (_, index) =>
      jwt({ name: `n${index}x`, issuer: { url: `https://n${index}.example.org`, audiences: ['a'] } }),
    )
    const found = await problemsOf(fileOf({ login: [login()], jwt: many }))
    assert.match(found.join(), /login and jwt have more than 64 entries/)
    assert.deepEqual(await problemsOf(fileOf({ login: [login()], jwt: many.slice(1) })), [])
    const patterns = Array.from({ length: 101 }, (_, index) => `group-${index}`)
    assert.match((await problems(login({ groupPatterns: patterns }))).join(), /groupPatterns has more than 100/)
    assert.match((await problems(login({ lifetimes: { max: '400d' } }))).join(), /max must be at most 365d/)
    assert.match((await problems(login({ lifetimes: { refreshAfter: '8d' } }))).join(), /refreshAfter .*max/)
  })
})
