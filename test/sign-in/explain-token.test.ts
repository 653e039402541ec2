// Explains why a token of a machine is accepted or rejected, by AccessExplanation and `platform auth explain-token`, without accepting it.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { keys, must, ours, rbac, refused, soon } from '../access/people.ts'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { startServer } from '../support/server.ts'
import { exchange } from './exchange.ts'
import { entryOf, openSignIn, type SignInStage } from './sign-in-stage.ts'
import { audience, seconds, startIssuer, type TestIssuer } from './test-issuer.ts'

const explanations = `${ours}/accessexplanations`
const mebibyte = 1024 * 1024

type Check = {
  readonly name: string
  readonly rule?: string
  readonly passed: boolean
  readonly message?: string
  readonly found?: readonly string[]
  readonly configured?: readonly string[]
}
const comparedIn = ({ checks }: { readonly checks: readonly Check[] }) =>
  checks.flatMap(({ name, found, configured }) => (configured ? [{ name, found, configured }] : []))
const failedIn = ({ checks }: { readonly checks: readonly Check[] }) =>
  checks.filter(({ passed }) => !passed).map(({ name, message }) => `${name}: ${message}`)

describe('the explanation of a token', () => {
  const place = mkdtempSync(join(tmpdir(), 'platform-explain-'))
  const scope = { projects: [{ project: 'web', readOnly: true }] }
  let issuer: TestIssuer
  let stranger: TestIssuer
  let stage: SignInStage
  let home: CliHome
  /** Every token that a test sent. */
  const sent: string[] = []
  before(async () => {
    const policy = join(place, 'policy.yaml')
    writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n')
    ;[issuer, stranger] = await Promise.all([startIssuer(), startIssuer()])
    const entry = entryOf(issuer, 'ci', {
      scope,
      claimMappings: {
        username: { claim: 'sub' },
        groups: { claim: 'groups' },
        extra: [{ key: 'example.org/branch', valueExpression: 'claims.?branch.orValue("")' }],
      },
      claimValidationRules: [
        { expression: 'claims.?branch.orValue("main") == "main"', message: 'only the branch main may deploy' },
      ],
      userValidationRules: [{ expression: '!user.username.endsWith("root")', message: 'root may not sign in' }],
    })
    stage = await openSignIn([entry], ['--audit-policy', policy])
    home = await openHome()
    await home.signIn(stage.server)
  })
  after(async () => {
    try {
      await home?.close()
    } finally {
      await stage?.close()
      await Promise.all([issuer.stop(), stranger.stop()])
      rmSync(place, { recursive: true })
    }
  })

  const ask = (token: unknown, key = stage.server.adminKey, more: object = {}) =>
    stage.ask(key, 'POST', explanations, { spec: { token, ...more } })
  /** The explanation by the API. The response must not repeat the token. */
  const explain = async (token: string) => {
    sent.push(token)
    const answer = await ask(token)
    const body = await must(Promise.resolve(answer))
    for (const part of partsOf(token)) assert.ok(!answer.text.includes(part), 'the response contains the token')
    assert.equal(body.spec?.token, undefined)
    return body.status.token
  }
  const file = (token: string, name = 'token') => {
    sent.push(token)
    writeFileSync(join(place, name), `${token}\n`)
    return join(place, name)
  }
  const verifications = async () => {
    const headers = { Authorization: `Bearer ${stage.server.adminKey}` }
    const text = await (await fetch(`${stage.server.http}/metrics`, { headers })).text()
    return text.split('\n').filter(line => line.startsWith('platform_jwt_verifications_total{'))
  }

  test('of an accepted token has every check and the user', async () => {
    const token = await issuer.sign({ groups: ['deployers'], branch: 'main' })
    const { accepted, issuer: name, checks, user, groups, extra, scope: limits } = await explain(token)
    assert.equal(accepted, true)
    assert.equal(name, 'ci')
    const names = 'form issuer signature audience times lifetime claimValidationRules[0] claimMappings'.split(' ')
    assert.deepEqual(
      checks.map((check: Check) => check.name),
      [...names, 'userValidationRules[0]'],
    )
    assert.ok(checks.every(({ passed }: Check) => passed))
    assert.equal(checks[6].rule, 'claims.?branch.orValue("main") == "main"')
    const direct = await stage.whoami(token)
    assert.equal(user, direct.username)
    assert.deepEqual(groups, direct.groups)
    assert.deepEqual(extra, { 'authentication.platform.sh/issuer': [issuer.url], 'example.org/branch': ['main'] })
    assert.deepEqual(limits, scope)
  })

  test('of a rejected token has the failed checks and their messages', async () => {
    const expired = await explain(await issuer.sign({ iat: seconds() - 700, exp: seconds() - 60 }))
    assert.equal(expired.accepted, false)
    assert.deepEqual(failedIn(expired), ['times: the token has expired'])
    assert.equal(expired.user, 'ci:robot')
    const wrong = await explain(await issuer.sign({ aud: 'https://other.example.org' }))
    assert.match(failedIn(wrong).join(), /^audience: the token has none of the audiences [^:]* issuer ci$/)
    const branch = await explain(await issuer.sign({ branch: 'dev' }))
    assert.deepEqual(failedIn(branch), ['claimValidationRules[0]: only the branch main may deploy'])
    const forged = await explain(`${(await issuer.sign()).slice(0, -8)}AAAAAAAA`)
    assert.deepEqual(failedIn(forged), ['signature: the signature of the token is invalid'])
  })

  test('has the issuer or audiences of the token beside the configured ones, if they do not match', async () => {
    const other = 'https://other.example.org'
    for (const [aud, found] of [
      [other, [other]],
      [
        [other, 7, 'x'],
        [other, 'x'],
      ],
      [undefined, []],
    ]) {
      const explained = await explain(await issuer.sign({ aud }))
      assert.deepEqual(comparedIn(explained), [{ name: 'audience', found, configured: [audience] }])
    }
    const unknown = await explain(await stranger.sign())
    assert.deepEqual(comparedIn(unknown), [{ name: 'issuer', found: [stranger.url], configured: [issuer.url] }])
    assert.deepEqual(comparedIn(await explain(await issuer.sign())), [])
  })

  test('has every failed check, not only the first', async () => {
    const found = await explain(
      await issuer.sign({ aud: 'x', sub: 'root', branch: 'dev', iat: seconds() - 700, exp: seconds() - 60 }),
    )
    assert.deepEqual(
      failedIn(found).map(one => one.replace(/:.*/, '')),
      ['audience', 'times', 'claimValidationRules[0]', 'userValidationRules[0]'],
    )
    const endless = await explain(await issuer.sign({ exp: undefined }))
    assert.ok(
      failedIn(endless).every(one => /no expiry/.test(one)),
      failedIn(endless).join(),
    )
  })

  test('of a token of an unknown issuer, of garbage and of 1 MiB ends with the check that failed', async () => {
    const unknown = await explain(await stranger.sign())
    assert.deepEqual(failedIn(unknown), ['issuer: the issuer of the token is not configured on this server'])
    assert.equal(unknown.issuer, undefined)
    assert.equal(unknown.user, undefined)
    assert.match(failedIn(await explain('garbage-garbage')).join(), /^form: malformed token/)
    assert.match(
      failedIn(await explain(`${'eyJh'.repeat(mebibyte / 4)}.e30.AAAA`)).join(),
      /^form: .* longer than 16384/,
    )
    assert.match(failedIn(await explain('')).join(), /^form: malformed token/)
    assert.deepEqual([stranger.fetches.discovery, stranger.fetches.keys], [0, 0])
  })

  test('does not accept the token: it is not cached, and its jti stays unused', async () => {
    const token = await issuer.sign({ jti: 'explained', sub: 'never-seen' })
    const earlier = await verifications()
    assert.equal((await explain(token)).accepted, true)
    assert.deepEqual(await verifications(), earlier)
    // A cached token is not verified again, so the exchange shows that the explanation cached nothing.
    assert.equal((await exchange(stage.server, token)).status, 200)
    assert.notDeepEqual(await verifications(), earlier)
  })

  test('requires the permission to explain other users', async () => {
    const token = await issuer.sign({ sub: 'private' })
    sent.push(token)
    const { spec } = await must(stage.ask(stage.server.adminKey, 'POST', keys, { spec: { user: 'ada' } }))
    await refused(ask(token, spec.key), 403, /accessexplanations\/others/)
    const rules = [
      { apiGroups: ['management.platform.sh'], resources: ['accessexplanations/others'], verbs: ['create'] },
    ]
    const admin = (path: string, body: object) =>
      must(stage.ask(stage.server.adminKey, 'POST', `${rbac}/${path}`, body))
    await admin('clusterroles', { metadata: { name: 'explainer' }, rules })
    await admin('clusterrolebindings', {
      metadata: { name: 'explainer' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'explainer' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ada' }],
    })
    assert.equal((await must(ask(token, spec.key))).status.token.user, 'ci:private')
  })

  test('is not combined with another question, and errors do not repeat the token', async () => {
    const token = await issuer.sign({ sub: 'combined' })
    sent.push(token)
    const resourceAttributes = { verb: 'get', group: 'management.platform.sh', resource: 'teams' }
    for (const more of [{ resourceAttributes }, { user: 'ada' }, { whoCan: true }]) {
      const { status, text } = await ask(token, stage.server.adminKey, more)
      assert.equal(status, 422, text)
      assert.match(text, /spec\.token/)
      for (const part of partsOf(token)) assert.ok(!text.includes(part), text)
    }
    for (const wrong of [[token], { token }]) {
      const { status, text } = await ask(wrong)
      assert.ok(status >= 400 && status < 500, text)
      for (const part of partsOf(token)) assert.ok(!text.includes(part), text)
    }
  })

  describe('on the command line', () => {
    const run = async (token: string) => home.run(['auth', 'explain-token', file(token)])

    test('is a table, with exit code 0 for an accepted token', async () => {
      const { code, stdout, stderr } = await run(await issuer.sign({ groups: ['deployers'], branch: 'main' }))
      assert.equal(code, 0, stderr)
      assert.match(stdout, /^accepted \(issuer ci\)\n/)
      assert.match(stdout, /^CHECK +RESULT +DETAIL$/m)
      assert.match(stdout, /^signature +passed$/m)
      assert.match(stdout, /^User: +ci:robot$/m)
      assert.match(stdout, /^Groups: .*ci:deployers/m)
      assert.match(stdout, /^Extra: .*example\.org\/branch=main/m)
      assert.match(stdout, /^Scope: .*"project":"web"/m)
    })

    test('has the reason and exit code 1 for a rejected token', async () => {
      const times = { iat: seconds() - 700, exp: seconds() - 60 }
      const rejected: (readonly [string, RegExp])[] = [
        [await issuer.sign(times), /^times +failed +the token has expired$/m],
        [
          await issuer.sign({ aud: ['x', 'y\u001b[2J'] }),
          /^audience +failed +the token has none of the audiences .* issuer ci \(token: x, y\S*\[2J; configured: https:\S+\)$/m,
        ],
        [await issuer.sign({ aud: undefined }), /^audience +failed .* \(token: none; configured: https:\S+\)$/m],
        [
          await issuer.sign({ branch: 'dev' }),
          /^claimValidationRules\[0\] +failed +only the branch main may deploy: claims/m,
        ],
        [
          await stranger.sign(),
          /^issuer +failed +the issuer of the token is not configured .* \(token: https:\S+; configured: https:\S+\)$/m,
        ],
        [`${'eyJh'.repeat(mebibyte / 4)}.e30.AAAA`, /^form +failed +the token is longer than 16384 bytes$/m],
      ]
      for (const [token, why] of rejected) {
        const { code, stdout, stderr } = await run(token)
        assert.equal(code, 1, stderr)
        assert.match(stdout, /^rejected/)
        assert.match(stdout, why)
        for (const part of partsOf(token)) assert.ok(!`${stdout}${stderr}`.includes(part), 'the output has the token')
      }
    })

    test('is JSON with -o json, and reads standard input', async () => {
      const token = await issuer.sign({ branch: 'dev' })
      sent.push(token)
      const { code, stdout } = await home.run('auth explain-token - -o json', { stdin: `${token}\n` })
      assert.equal(code, 1)
      const found = JSON.parse(stdout)
      assert.deepEqual([found.accepted, found.issuer, found.user], [false, 'ci', 'ci:robot'])
      assert.deepEqual(failedIn(found), ['claimValidationRules[0]: only the branch main may deploy'])
    })

    test('does not send content that is not a JWT, and does not repeat a token that is an argument', async () => {
      assert.match(
        await home.fails(2, ['auth', 'explain-token', file('garbage-garbage')]),
        /not a JWT; it was not sent/,
      )
      for (const argument of [fake, `Bearer ${fake}`, fake.slice(0, 30)]) {
        const said = await home.fails(2, ['auth', 'explain-token', argument])
        assert.match(said, /expects a file/)
        assert.ok(!said.includes('eyJ'), said)
      }
    })
  })

  test('leaves no token in the log and in the audit log, which has every body', async () => {
    const { headers } = await stage.server.request('POST', explanations, { body: { spec: { token: await signed() } } })
    const id = headers['audit-id'] as string
    const audit = () => readFileSync(join(stage.server.directory, 'audit.log'), 'utf8')
    await soon('the request is in the audit log', async () =>
      audit()
        .split('\n')
        .some(line => line.includes(id) && line.includes('ResponseComplete') && line.includes('requestObject')),
    )
    const logs = `${audit()}${stage.server.said()}`
    assert.match(logs, /"token":"hmac-sha256:/)
    const leaked = sent.flatMap(partsOf).filter(part => logs.includes(part))
    assert.deepEqual(
      leaked.map(part => part.slice(0, 40)),
      [],
    )
  })
  const signed = async () => {
    const token = await issuer.sign({ sub: 'logged' })
    sent.push(token)
    return token
  }
})

const fake = `eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJmYWtlIn0.${'A'.repeat(40)}`

/** The parts of a token that identify it. The header is the same for all tokens of a key. */
const partsOf = (token: string) => token.split('.').filter(part => part.length > 8)

test('without issuers, the explanation says so', async () => {
  const server = await startServer({ storage: 'memory' })
  try {
    const { status, body, text } = await server.request('POST', explanations, { body: { spec: { token: fake } } })
    assert.equal(status, 201, text)
    assert.equal(body.status.token.accepted, false)
    assert.match(failedIn(body.status.token).join(), /^issuer: no issuers are configured on this server/)
    assert.ok(!text.includes(fake.slice(21, 40)), text)
  } finally {
    await server.stop()
  }
})
