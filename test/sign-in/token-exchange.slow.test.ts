// A machine exchanges its token for an access key (RFC 8693, D67): one key per token, with the limits of the token.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { keys, must, ours, rbac, refused, soon, teams } from '../access/people.ts'
import { startGateway } from '../gateway/gateway-fixture.ts'
import { eventually } from '../support/wire.ts'
import { type Exchanged, exchange, exchangeGrant, jwtType, keyOf, sendForm } from './exchange.ts'
import { entryOf, openSignIn, type SignInStage, self } from './sign-in-stage.ts'
import { audience, seconds, startIssuer, type TestIssuer } from './test-issuer.ts'

const merge = { 'Content-Type': 'application/merge-patch+json' }
const tokens = `${ours}/directclusterendpointtokens`

describe('the exchange of a token', () => {
  let issuer: TestIssuer
  let other: TestIssuer
  let stage: SignInStage
  const scope = { projects: [{ project: 'web', readOnly: true }] }
  const admin = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    stage.server.request(method, path, { ...(body === undefined ? {} : { body }), ...(headers ? { headers } : {}) })
  const bind = (role: string, user: string) =>
    must(
      admin('POST', `${rbac}/clusterrolebindings`, {
        metadata: { generateName: 'b-' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      }),
    )
  /** The stored key of a secret. */
  const storedKey = async (secret: string) => {
    const { extra } = await stage.whoami(secret)
    return must(admin('GET', `${keys}/${extra['authentication.platform.sh/key'][0]}`))
  }
  before(async () => {
    ;[issuer, other] = await Promise.all([startIssuer(), startIssuer('EdDSA')])
    stage = await openSignIn([entryOf(issuer), entryOf(other, 'scoped', { scope })])
  })
  after(async () => {
    await stage?.close()
    await Promise.all([issuer.stop(), other.stop()])
  })

  test('gives a key of the same user, with groups and teams', async () => {
    await must(admin('POST', teams, { metadata: { name: 'by-group' }, spec: { groups: ['ci:deployers'] } }))
    const token = await issuer.sign({ groups: ['deployers'], jti: 'one' })
    const { status, headers, body } = await exchange(stage.server, token)
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'no-store')
    const { access_token: key, expires_in: left, ...rest } = body
    assert.deepEqual(rest, {
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
    })
    assert.ok(left > 0 && left <= 600, String(left))
    const [direct, exchanged] = [await stage.whoami(token), await stage.whoami(key)]
    assert.equal(exchanged.username, 'ci:robot')
    assert.deepEqual([...exchanged.groups].sort(), [...direct.groups].sort())
    assert.ok(exchanged.groups.includes('platform:team:by-group'))
    assert.deepEqual(exchanged.extra['authentication.platform.sh/issuer'], [issuer.url])
    const { spec } = await storedKey(key)
    assert.equal(spec.type, 'Other')
    assert.equal(spec.ttl, left)
  })

  test('lasts an hour at most, and no longer than the token', async () => {
    const { body } = await exchange(stage.server, await issuer.sign({ exp: seconds() + 7200 }))
    assert.equal(body.expires_in, 3600)
    const short = await exchange(stage.server, await issuer.sign({ exp: seconds() + 30 }))
    assert.ok(short.body.expires_in <= 30)
    // Within the leeway for clocks, a direct request is still accepted.
    const ended = await exchange(stage.server, await issuer.sign({ exp: seconds() - 1 }))
    assert.equal(ended.body.error, 'invalid_request')
    assert.match(ended.body.error_description, /has expired/)
  })

  test('happens once for each jti, also for concurrent requests', async () => {
    const token = await issuer.sign({ jti: 'once' })
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(stage.server, token)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400, 400, 400, 400, 400])
    const late = answers.find(({ status }) => status === 400)
    assert.equal(late?.body.error, 'invalid_request')
    assert.match(late?.body.error_description, /exchanged already/)
    const again = await issuer.sign({ jti: 'once', sub: 'somebody' })
    assert.match((await exchange(stage.server, again)).body.error_description, /exchanged already/)
    // Another issuer has its own ids.
    assert.equal((await exchange(stage.server, await other.sign({ jti: 'once' }))).status, 200)
  })

  test('happens once for a token without jti', async () => {
    const token = await issuer.sign({ sub: 'anonymous' })
    assert.equal((await exchange(stage.server, token)).status, 200)
    assert.match((await exchange(stage.server, token)).body.error_description, /exchanged already/)
    assert.equal((await exchange(stage.server, await issuer.sign({ sub: 'anonymous', n: 1 }))).status, 200)
  })

  test('keeps the scope of the entry', async () => {
    await bind('platform-admin', 'scoped:robot')
    const key = await keyOf(stage.server, await other.sign())
    await refused(stage.ask(key, 'POST', teams, { metadata: { name: 'x' } }), 403, /scope/)
    await refused(stage.ask(key, 'POST', `${ours}/namespaces/p-web/projectsecrets`, { metadata: { name: 'a' } }), 403)
    await must(stage.ask(key, 'GET', `${ours}/namespaces/p-web/projectsecrets`))
  })

  test('is refused with the errors of RFC 6749, which contain no token', async () => {
    const token = await issuer.sign({ jti: 'refused' })
    const refusal = async (answer: Promise<Exchanged>, status: number, error: string, why: RegExp) => {
      const { status: actual, headers, body, text } = await answer
      assert.equal(actual, status, text)
      assert.equal(body.error, error, text)
      assert.match(body.error_description, why)
      assert.equal(headers.get('cache-control'), 'no-store')
      for (const part of token.split('.')) assert.ok(!text.includes(part), text)
    }
    const { server } = stage
    await refusal(exchange(server, token, { grant_type: 'password' }), 400, 'unsupported_grant_type', /token-exchange/)
    await refusal(exchange(server, token, { grant_type: undefined }), 400, 'invalid_request', /grant_type/)
    await refusal(exchange(server, undefined), 400, 'invalid_request', /subject_token/)
    await refusal(exchange(server, token, { subject_token_type: undefined }), 400, 'invalid_request', /token_type/)
    const saml = 'urn:ietf:params:oauth:token-type:saml2'
    await refusal(exchange(server, token, { subject_token_type: saml }), 400, 'invalid_request', /token_type/)
    await refusal(
      exchange(server, token, { requested_token_type: saml }),
      400,
      'invalid_request',
      /requested_token_type/,
    )
    await refusal(exchange(server, token, { actor_token: token }), 400, 'invalid_request', /actor_token/)
    await refusal(exchange(server, token, { scope: 'admin' }), 400, 'invalid_scope', /scope/)
    await refusal(exchange(server, token, { audience: 'x' }), 400, 'invalid_target', /audience/)
    await refusal(exchange(server, stage.server.adminKey), 400, 'invalid_request', /not a JWT/)
    await refusal(exchange(server, `${token.slice(0, -8)}AAAAAAAA`), 400, 'invalid_request', /signature/)
    await refusal(exchange(server, await issuer.sign({ aud: 'x' })), 400, 'invalid_request', /audiences/)
    await refusal(exchange(server, await issuer.sign({ exp: 1 })), 400, 'invalid_request', /expired/)
    const form = new URLSearchParams({ grant_type: exchangeGrant, subject_token: token, subject_token_type: jwtType })
    await refusal(sendForm(server, `${form}&subject_token=x`, formType), 400, 'invalid_request', /twice/)
    await refusal(sendForm(server, 'a=1', { 'Content-Type': 'text/plain' }), 415, 'invalid_request', /urlencoded/)
    await refusal(exchange(server, 'e'.repeat(40_000)), 413, 'invalid_request', /./)
    // None of these used up the token.
    assert.equal((await exchange(server, token, { subject_token_type: idTokenType })).status, 200)
  })

  test('gives a key that cannot create, change, rotate or delete keys, not even as an administrator', async () => {
    await bind('platform-admin', 'ci:root')
    const token = await issuer.sign({ sub: 'root' })
    const key = await keyOf(stage.server, token)
    await must(stage.ask(key, 'GET', keys))
    const { metadata } = await must(admin('POST', keys, { spec: { user: 'ci:root' } }))
    const name = `${keys}/${metadata.name}`
    const rotation = { apiVersion: 'management.platform.sh/v1', kind: 'KeyRotation', spec: {} }
    const own = `${keys}/${(await storedKey(key)).metadata.name}`
    for (const credential of [key, token]) {
      await refused(stage.ask(credential, 'POST', keys, { spec: { user: 'ci:root' } }), 403, /access keys/)
      await refused(stage.ask(credential, 'POST', keys, { spec: { user: 'ci:root', ttl: 1 } }), 403, /access keys/)
      await refused(stage.ask(credential, 'PATCH', name, { spec: { displayName: 'x' } }, merge), 403, /access keys/)
      await refused(stage.ask(credential, 'POST', `${name}/rotate`, rotation), 403, /access keys/)
      await refused(stage.ask(credential, 'POST', `${own}/rotate`, rotation), 403, /access keys/)
      await refused(stage.ask(credential, 'DELETE', name), 403, /access keys/)
      await refused(stage.ask(credential, 'DELETE', `${keys}?fieldSelector=spec.user%3Dadmin`), 403, /access keys/)
      const as = { 'Impersonate-User': 'admin' }
      await refused(stage.ask(credential, 'POST', keys, { spec: {} }, as), 403, /access keys/)
      await refused(stage.ask(credential, 'DELETE', name, undefined, as), 403, /access keys/)
    }
    await refused(stage.ask(token, 'DELETE', own), 403, /access keys/)
    await must(stage.ask(key, 'DELETE', own))
    assert.match(await stage.outcome(key), /^401 /)
  })

  test('gives a key that nobody can rotate, extend or strengthen', async () => {
    const key = await keyOf(stage.server, await issuer.sign({ sub: 'fixed' }))
    const { metadata, spec } = await storedKey(key)
    const name = `${keys}/${metadata.name}`
    const owner = (await must(admin('POST', keys, { spec: { user: 'ci:fixed' } }))).spec.key
    for (const who of [owner, stage.server.adminKey]) {
      for (const change of [{ ttl: 7200 }, { ttl: 0 }, { groups: ['x'] }, { displayName: 'x' }, { type: 'User' }])
        await refused(stage.ask(who, 'PATCH', name, { spec: change }, merge), 403, /exchange/)
      await refused(stage.ask(who, 'POST', `${name}/rotate`, { spec: {} }), 403, /exchange/)
      const annotations = Object.fromEntries(Object.keys(metadata.annotations).map(one => [one, null]))
      await stage.ask(who, 'PATCH', name, { metadata: { annotations } }, merge)
    }
    const after = await must(admin('GET', name))
    assert.deepEqual([after.spec, after.metadata.annotations], [spec, metadata.annotations])
    await must(stage.ask(owner, 'PATCH', name, { spec: { disabled: true } }, merge))
    await refused(stage.ask(owner, 'PATCH', name, { spec: { disabled: false } }, merge), 403, /exchange/)
    assert.match(await stage.outcome(key), /^401 access key is disabled/)
    const forged = { metadata: { annotations: metadata.annotations }, spec: { user: 'ci:fixed' } }
    await refused(admin('POST', keys, forged), 422, /reserved for the server/)
  })

  test('gives groups that count only with the key', async () => {
    await keyOf(stage.server, await issuer.sign({ sub: 'grouped', groups: ['rare'] }))
    await must(
      admin('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'rare' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-admin' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'ci:rare' }],
      }),
    )
    const spec = {
      user: 'ci:grouped',
      resourceAttributes: { verb: 'create', group: 'management.platform.sh', resource: 'teams' },
    }
    const { status } = await must(admin('POST', `${ours}/accessexplanations`, { spec }))
    assert.equal(status.allowed, false)
  })

  test('is audited with its user and key, without the token', async () => {
    const token = await issuer.sign({ sub: 'audited', jti: 'audited' })
    const key = await keyOf(stage.server, token)
    const log = () => readFileSync(join(stage.server.directory, 'audit.log'), 'utf8')
    await soon('the audit log has the exchange', async () =>
      log()
        .split('\n')
        .some(line => line.includes('/auth/token') && line.includes('ci:audited')),
    )
    for (const part of [...token.split('.'), key])
      assert.ok(!log().includes(part) && !stage.server.said().includes(part), 'a log contains a part of a secret')
  })
})

const formType = { 'Content-Type': 'application/x-www-form-urlencoded' }
const idTokenType = 'urn:ietf:params:oauth:token-type:id_token'

describe('a change of auth.yaml', () => {
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
  const ended = (key: string) => soon('the key has ended', async () => /^401 /.test(await stage.outcome(key)))
  /** Writes auth.yaml, and waits until the server uses it. */
  const use = async (jwt: readonly object[]) => {
    const count = () => stage.server.output().split('auth config reloaded').length
    const earlier = count()
    stage.write(jwt)
    await eventually('auth.yaml is reloaded', async () => count() > earlier)
  }
  const withAudiences = (...audiences: string[]) => {
    const entry = entryOf(issuer)
    return { ...entry, issuer: { ...entry.issuer, audiences } }
  }

  test('ends exchanged keys of an entry that was removed, renamed or changed', async () => {
    const changes: (readonly [string, readonly object[]])[] = [
      ['removed', []],
      ['renamed', [entryOf(issuer, 'renamed')]],
      ['another audience', [withAudiences('https://other.example.org')]],
      ['another scope', [entryOf(issuer, 'ci', { scope: { projects: [{ project: 'web' }] } })]],
      ['a new rule', [entryOf(issuer, 'ci', { claimValidationRules: [{ claim: 'sub', requiredValue: 'x' }] })]],
    ]
    for (const [what, next] of changes) {
      await use([entryOf(issuer)])
      const key = await keyOf(stage.server, await issuer.sign({ sub: what }))
      assert.equal(await stage.outcome(key), `ci:${what}`)
      await use(next)
      await ended(key)
      // It does not come back with the entry.
      await use([entryOf(issuer)])
      assert.match(await stage.outcome(key), /^401 /, what)
    }
  })

  test('keeps keys if the entry still maps their audience', async () => {
    await use([entryOf(issuer)])
    const key = await keyOf(stage.server, await issuer.sign({ sub: 'kept' }))
    await use([withAudiences(audience, 'https://more.example.org')])
    assert.equal(await stage.outcome(key), 'ci:kept')
    await refused(stage.ask(key, 'POST', keys, { spec: {} }), 403, /access keys/)
  })

  test('ends direct-cluster tokens of a removed entry, of tokens and of exchanged keys', async () => {
    await use([entryOf(issuer)])
    const token = await issuer.sign({ sub: 'minter' })
    const key = await keyOf(stage.server, token)
    const direct: string[] = []
    const gateway = await startGateway(stage.server, {
      clusters: [{ name: 'prod', kubeconfig: stage.server.kubeconfig }],
    })
    try {
      const status = async (one: string) =>
        (await gateway.request('POST', `/kubernetes/cluster/prod${self}`, { key: one, body: {} })).status
      // Revocations have the precision of a second, and an earlier test changed the entry.
      for (const credential of [token, key])
        await soon('a direct-cluster token works', async () => {
          const { status: made } = await must(stage.ask(credential, 'POST', tokens, { spec: {} }))
          const isAccepted = (await status(made.token)) === 201
          if (isAccepted) direct.push(made.token)
          return isAccepted
        })
      await use([])
      for (const one of direct) await soon('the gateway rejects it', async () => (await status(one)) === 401)
      await use([entryOf(issuer)])
      const later = await issuer.sign({ sub: 'later' })
      // Revocations have the precision of a second.
      await soon('a new token works', async () => {
        const { status: made } = await must(stage.ask(later, 'POST', tokens, { spec: {} }))
        return (await status(made.token)) === 201
      })
      for (const one of direct) assert.equal(await status(one), 401)
    } finally {
      await gateway.stop()
    }
  })
})

describe('an entry that is removed while the server is stopped', () => {
  test('ends its keys and its direct-cluster tokens', async () => {
    const issuer = await startIssuer()
    const stage = await openSignIn([entryOf(issuer)], ['--storage', 'sqlite'])
    try {
      const token = await issuer.sign()
      const key = await keyOf(stage.server, token)
      const minted = (await must(stage.ask(token, 'POST', tokens, { spec: {} }))).status.token
      await stage.server.restart(async () => stage.write([]))
      assert.match(await stage.outcome(key), /^401 /)
      const gateway = await startGateway(stage.server, {
        clusters: [{ name: 'prod', kubeconfig: stage.server.kubeconfig }],
      })
      try {
        const status = async () =>
          (await gateway.request('POST', `/kubernetes/cluster/prod${self}`, { key: minted, body: {} })).status
        await soon('the gateway rejects it', async () => (await status()) === 401)
      } finally {
        await gateway.stop()
      }
    } finally {
      await stage.close()
      await issuer.stop()
    }
  })
})
