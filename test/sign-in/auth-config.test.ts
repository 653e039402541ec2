// auth.yaml: all problems with their lines, the expressions of Kubernetes' documentation, and reloads whole or not at all.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { stringify } from 'yaml'
import { teams } from '../access/people.ts'
import { eventually } from '../support/wire.ts'
import { configHeader as header, problemsOf } from './config-problems.ts'
import { entryOf, openSignIn, type SignInStage } from './sign-in-stage.ts'
import { audience, startIssuer, type TestIssuer } from './test-issuer.ts'

type Entry = { readonly [field: string]: unknown }
const entry = (over: Entry = {}): Entry => ({
  name: 'ci',
  issuer: { url: 'https://issuer.example.org', audiences: [audience] },
  claimMappings: { username: { claim: 'sub' } },
  ...over,
})
const fileOf = (...jwt: readonly Entry[]) => header + stringify({ jwt })

describe('platform config check reports', () => {
  test('nothing for a valid file, without contact to the issuer', async () => {
    assert.deepEqual(await problemsOf(fileOf(entry())), [])
    assert.deepEqual(await problemsOf(header), [])
  })

  test('all problems, each with its line', async () => {
    const text = `${header}jwt:
  - name: system
    issuer:
      url: http://issuer.example.org
      audiences: []
    claimMappings:
      username: { claim: sub, prefix: '' }
      grups: { claim: groups }
    scope:
      projects: [{}]
      projekts: []
  - name: two
    issuer: { url: 'https://issuer.example.org', audiences: ['platform:x'], certificateAuthorityFile: none.pem }
    claimValidationRules:
      - { expression: 'claims.sub' }
      - { claim: a, expression: 'true' }
    claimMappings:
      username: { expression: 'claims.sub +' }
`
    const problems = await problemsOf(text)
    const expected = [
      /^4:\d+: jwt\[0\]\.name must not be system/,
      /^6:\d+: jwt\[0\]\.issuer\.url must be an https URL/,
      /^7:\d+: jwt\[0\]\.issuer\.audiences requires at least one/,
      /^9:\d+: jwt\[0\]\.claimMappings\.username\.prefix requires a value/,
      /^10:\d+: unknown key jwt\[0\]\.claimMappings\.grups.*groups/,
      /^12:\d+: jwt\[0\]\.scope\.projects\[0\]\.project.*name of the project/,
      /^13:\d+: unknown key jwt\[0\]\.scope\.projekts.*projects/,
      /^15:\d+: jwt\[1\]\.issuer\.audiences\[0\] must not start with platform:/,
      /^15:\d+: jwt\[1\]\.issuer\.certificateAuthorityFile: .*none\.pem/,
      /^17:\d+: jwt\[1\]\.claimValidationRules\[0\]\.expression .*must give true or false, not dyn/,
      /^18:\d+: jwt\[1\]\.claimValidationRules\[1\] requires either claim or expression/,
      /^20:\d+: jwt\[1\]\.claimMappings\.username\.expression \(character 13\): Unexpected token/,
    ]
    assert.equal(problems.length, expected.length, problems.join('\n'))
    for (const [index, pattern] of expected.entries()) assert.match(problems[index] ?? '', pattern)
  })

  test('prefixes that would let one issuer take the names of another, or of a user', async () => {
    const named = (name: string, prefix: string) =>
      entry({
        name,
        issuer: { url: `https://${name}.example.org`, audiences: [audience] },
        claimMappings: { username: { claim: 'sub', prefix } },
      })
    for (const prefix of ['ad', 'system:', 'platform:team:', 'a b:', ''])
      assert.equal((await problemsOf(fileOf(named('a', prefix)))).length, 1, prefix)
    for (const prefixes of [
      ['x:', 'x:y:'],
      ['x:', 'x:'],
      ['b:', 'b:'],
    ] as const) {
      const problems = await problemsOf(fileOf(named('a', prefixes[0]), named('b', prefixes[1])))
      assert.equal(problems.length, 1, problems.join('\n'))
      assert.match(problems[0] ?? '', /begins with the prefix of jwt\[0\]/)
    }
    assert.match((await problemsOf(fileOf(named('b', 'a:'), named('a', 'b:')))).join(), /^$/)
  })

  test('duplicate names and issuers, and more than 64 of them', async () => {
    assert.match((await problemsOf(fileOf(entry(), entry({ name: 'b' })))).join(), /jwt\[1\]\.issuer\.url: duplicate/)
    const many = Array.from({ length: 65 }, (_, index) =>
      entry({ name: `n${index}x`, issuer: { url: `https://n${index}.example.org`, audiences: [audience] } }),
    )
    assert.match((await problemsOf(fileOf(...many))).join(), /jwt has more than 64 entries/)
    assert.deepEqual(await problemsOf(fileOf(...many.slice(1))), [])
  })

  test('an e-mail as the username without a look at email_verified', async () => {
    const mapped = (expression: string, more: Entry = {}) =>
      problemsOf(fileOf(entry({ claimMappings: { username: { expression } }, ...more })))
    assert.match((await mapped('claims.email')).join(), /claims\.email_verified/)
    assert.match((await mapped('claims["email"]')).join(), /claims\.email_verified/)
    assert.deepEqual(await mapped('claims.?email_verified.orValue(false) ? claims.email : claims.sub'), [])
    const rule = { expression: 'claims.email_verified == true' }
    assert.deepEqual(await mapped('claims.email', { claimValidationRules: [rule] }), [])
  })

  test('expressions that may run for long', async () => {
    const rule = (expression: string) => problemsOf(fileOf(entry({ claimValidationRules: [{ expression }] })))
    assert.match((await rule("claims.sub.matches('(a+)+$')")).join(), /matches\(\): a repeated group/)
    assert.match(
      (await rule('claims.sub.matches(claims.pattern)')).join(),
      /matches\(\): the pattern must be a literal/,
    )
    assert.match((await rule(`claims.sub == '${'x'.repeat(5000)}'`)).join(), /longer than 4096 characters/)
  })
})

describe('the configuration in use', () => {
  let issuer: TestIssuer
  let stage: SignInStage
  before(async () => {
    issuer = await startIssuer()
    stage = await openSignIn([entryOf(issuer)])
  })
  after(async () => {
    await stage?.close()
    await issuer.stop()
  })

  /** Resolves once the server has read the new file. */
  const use = async (jwt: readonly object[] | string, result = 'auth config reloaded') => {
    const count = () => stage.server.output().split(result).length
    const earlier = count()
    stage.write(jwt)
    await eventually(result, async () => count() > earlier)
  }

  test('expressions of the documentation of Kubernetes work', async () => {
    const claims = {
      sub: 'repo',
      foo: 'bar',
      roles: 'a,b',
      list: ['c'],
      exp: Math.floor(Date.now() / 1000) + 60,
      nbf: Math.floor(Date.now() / 1000) - 60,
      nested: { deep: { name: 'x' } },
    }
    const mappings = {
      username: { expression: "has(claims.foo) ? claims.foo + '/' + claims.nested.deep.name : claims.sub" },
      groups: { expression: "claims.roles.split(',') + claims.list.map(one, 'team-' + one)" },
      uid: { expression: 'claims.sub' },
      extra: [
        { key: 'example.org/tenant', valueExpression: "claims.?tenant.orValue('')" },
        { key: 'example.org/roles', valueExpression: 'claims.list' },
      ],
    }
    await use([
      entryOf(issuer, 'ci', {
        claimMappings: mappings,
        claimValidationRules: [
          { claim: 'foo', requiredValue: 'bar' },
          { expression: 'claims.exp - claims.nbf <= 86400', message: 'too long' },
          { expression: "claims.?hd.orValue('example.com') == 'example.com'" },
          { expression: "'c' in claims.list && claims.sub.matches('^re.o$')" },
        ],
        userValidationRules: [
          { expression: "!user.username.startsWith('system:')", message: 'reserved' },
          { expression: "user.groups.all(group, !group.startsWith('system:'))" },
          { expression: "user.extra['example.org/roles'][0] == 'c'" },
        ],
      }),
    ])
    const { username, groups, uid, extra } = await stage.whoami(await issuer.sign(claims))
    assert.equal(username, 'ci:bar/x')
    assert.deepEqual(groups.slice(2), ['platform:issuer:ci', 'ci:a', 'ci:b', 'ci:team-c'])
    assert.equal(uid, 'repo')
    assert.deepEqual(extra['example.org/roles'], ['c'])
    assert.equal(extra['example.org/tenant'], undefined)
    for (const [change, why] of [
      [{ foo: 'baz' }, /the claim foo does not have the required value/],
      [{ nbf: 0 }, /too long/],
      [{ hd: 'evil.com' }, /claimValidationRules\[2\]/],
      [{ list: undefined }, /claimValidationRules\[3\]: the token lacks a claim/],
      [{ nested: 'flat' }, /claimMappings\.username/],
    ] as const)
      assert.match(await stage.outcome(await issuer.sign({ ...claims, ...change })), why)
  })

  test('an evaluation ends when it takes too many steps', async () => {
    const nested = 'claims.list.exists(a, claims.list.exists(b, claims.list.exists(c, a + b + c == "x")))'
    await use([entryOf(issuer, 'ci', { claimValidationRules: [{ expression: nested }] })])
    const list = Array.from({ length: 1000 }, () => 'a')
    assert.match(await stage.outcome(await issuer.sign({ list })), /^401 .*too many steps/)
  })

  test('an e-mail is a username only if the issuer verified it', async () => {
    await use([entryOf(issuer, 'ci', { claimMappings: { username: { claim: 'email' } } })])
    const email = 'ada@example.org'
    for (const email_verified of [undefined, false, 'true'])
      assert.match(await stage.outcome(await issuer.sign({ email, email_verified })), /^401 .*not verified/)
    assert.equal(await stage.outcome(await issuer.sign({ email, email_verified: true })), `ci:${email}`)
  })

  test('an invalid file changes nothing, and the next valid one is used', async () => {
    await use([entryOf(issuer, 'one')])
    const token = await issuer.sign()
    assert.equal(await stage.outcome(token), 'one:robot')
    await use(`${header}jwt: [{ name: two }]`, 'auth config reload failed, keeping previous')
    assert.equal(await stage.outcome(token), 'one:robot')
    await use([entryOf(issuer, 'two')])
    assert.equal(await stage.outcome(token), 'two:robot')
  })

  test('a cached token follows a new rule, scope or audience at once', async () => {
    const token = await issuer.sign()
    await use([entryOf(issuer)])
    assert.equal(await stage.outcome(token), 'ci:robot')
    await use([entryOf(issuer, 'ci', { scope: { projects: [{ project: 'web' }] } })])
    assert.ok((await stage.whoami(token)).extra['authentication.platform.sh/scope'])
    await use([entryOf(issuer, 'ci', { claimValidationRules: [{ claim: 'sub', requiredValue: 'other' }] })])
    assert.match(await stage.outcome(token), /^401 the claim sub/)
    const { issuer: source } = entryOf(issuer)
    await use([entryOf(issuer, 'ci', { issuer: { ...source, audiences: ['https://other.example.org'] } })])
    assert.match(await stage.outcome(token), /^401 .*audiences/)
  })

  test('a watch ends when its issuer is removed', async () => {
    await use([entryOf(issuer)])
    const token = await issuer.sign()
    const events = stage.server.watch(`${teams}?timeoutSeconds=300`, { key: token })
    const ended = (async () => {
      for await (const _ of events);
    })()
    await eventually('the watch is open', async () => {
      const headers = { Authorization: `Bearer ${stage.server.adminKey}` }
      const text = await (await fetch(`${stage.server.http}/metrics`, { headers })).text()
      return /apiserver_longrunning_requests\{verb="WATCH"\} [1-9]/.test(text)
    })
    await use([])
    await ended
    assert.match(await stage.outcome(token), /^401 the issuer of the token is not configured/)
  })
})
