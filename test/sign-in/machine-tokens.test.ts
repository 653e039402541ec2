// Machines sign in with tokens of a configured issuer: identity, groups, scope, and what such a caller may do (D67).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { keys, must, ours, rbac, refused, soon, teams } from '../access/people.ts'
import { startGateway } from '../gateway/gateway-fixture.ts'
import { entryOf, openSignIn, type SignInStage, self } from './sign-in-stage.ts'
import { seconds, startIssuer, type TestIssuer } from './test-issuer.ts'

const tokens = `${ours}/directclusterendpointtokens`
const claimsIn = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

describe('a machine with a token of a configured issuer', () => {
  let issuer: TestIssuer
  let other: TestIssuer
  let stage: SignInStage
  const admin = (method: string, path: string, body?: unknown) =>
    stage.server.request(method, path, body === undefined ? {} : { body })
  const bind = (role: string, user: string) =>
    must(
      admin('POST', `${rbac}/clusterrolebindings`, {
        metadata: { generateName: 'b-' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      }),
    )
  before(async () => {
    ;[issuer, other] = await Promise.all([startIssuer('RS256'), startIssuer('EdDSA')])
    stage = await openSignIn([
      entryOf(issuer),
      entryOf(other, 'scoped', { scope: { projects: [{ project: 'web', readOnly: true }] } }),
    ])
  })
  after(async () => {
    await stage?.close()
    await Promise.all([issuer.stop(), other.stop()])
  })

  test('acts as the mapped user, with prefix, groups and teams', async () => {
    await must(admin('POST', teams, { metadata: { name: 'by-user' }, spec: { users: ['ci:robot'] } }))
    await must(admin('POST', teams, { metadata: { name: 'by-group' }, spec: { groups: ['ci:deployers'] } }))
    const { username, groups, extra } = await stage.whoami(await issuer.sign({ groups: ['deployers'] }))
    assert.equal(username, 'ci:robot')
    assert.deepEqual([...groups].sort(), [
      'ci:deployers',
      'platform:issuer:ci',
      'platform:team:by-group',
      'platform:team:by-user',
      'platform:user:ci:robot',
      'system:authenticated',
    ])
    assert.deepEqual(extra['authentication.platform.sh/issuer'], [issuer.url])
    assert.ok(Number(extra['authentication.platform.sh/key-ends-in'][0]) <= 600)
  })

  test('loses a team at once when it leaves the team', async () => {
    const token = await issuer.sign({ sub: 'leaver' })
    await must(admin('POST', teams, { metadata: { name: 'left' }, spec: { users: ['ci:leaver'] } }))
    assert.ok((await stage.whoami(token)).groups.includes('platform:team:left'))
    await must(admin('DELETE', `${teams}/left`))
    assert.ok(!(await stage.whoami(token)).groups.includes('platform:team:left'))
  })

  test('names like those of administrators give no power', async () => {
    for (const sub of ['admin', 'system:admin', 'platform:team:by-user', 'platform:user:admin']) {
      const token = await issuer.sign({ sub, groups: ['system:masters', 'platform:user:admin'] })
      const { username, groups } = await stage.whoami(token)
      assert.equal(username, `ci:${sub}`)
      assert.deepEqual(
        groups.filter((group: string) => !group.startsWith('ci:')),
        ['system:authenticated', `platform:user:ci:${sub}`, 'platform:issuer:ci'],
      )
      await refused(stage.ask(token, 'POST', teams, { metadata: { generateName: 'x-' } }), 403)
    }
  })

  test('equal subjects of two issuers are two users', async () => {
    assert.equal(await stage.outcome(await issuer.sign()), 'ci:robot')
    assert.equal((await stage.whoami(await other.sign())).username, 'scoped:robot')
  })

  test('has the scope of the entry of its issuer', async () => {
    await bind('platform-admin', 'scoped:robot')
    const token = await other.sign()
    await refused(
      stage.ask(token, 'POST', teams, { metadata: { name: 'x' } }),
      403,
      /scope of tokens of issuer "scoped"/,
    )
    await refused(stage.ask(token, 'POST', `${ours}/namespaces/p-web/projectsecrets`, { metadata: { name: 'a' } }), 403)
    await must(stage.ask(token, 'GET', `${ours}/namespaces/p-web/projectsecrets`))
    const { extra } = await stage.whoami(token)
    assert.deepEqual(JSON.parse(extra['authentication.platform.sh/scope'][0]), {
      projects: [{ project: 'web', readOnly: true }],
    })
  })

  test('cannot create, change or rotate access keys, not even as an administrator', async () => {
    await bind('platform-admin', 'ci:root')
    const token = await issuer.sign({ sub: 'root' })
    const { metadata } = await must(admin('POST', keys, { spec: { user: 'ada' } }))
    const name = `${keys}/${metadata.name}`
    await refused(stage.ask(token, 'POST', keys, { spec: { user: 'ci:root' } }), 403, /access keys/)
    const merge = { 'Content-Type': 'application/merge-patch+json' }
    for (const spec of [{ disabled: true }, { groups: ['x'] }, { displayName: 'x' }])
      await refused(stage.ask(token, 'PATCH', name, { spec }, merge), 403, /access keys/)
    const rotation = { apiVersion: 'management.platform.sh/v1', kind: 'KeyRotation', spec: {} }
    await refused(stage.ask(token, 'POST', `${name}/rotate`, rotation), 403, /access keys/)
    await refused(
      stage.ask(token, 'PATCH', name, { spec: { displayName: 'x' } }, { ...merge, 'Impersonate-User': 'admin' }),
      403,
      /access keys/,
    )
    await must(stage.ask(token, 'GET', keys))
  })

  test('passes the permission gate like every other user (D60)', async () => {
    await must(
      admin('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'role-writer' },
        rules: [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['create'] }],
      }),
    )
    await bind('role-writer', 'ci:writer')
    const token = await issuer.sign({ sub: 'writer' })
    const role = (verbs: string[]) => ({
      metadata: { generateName: 'r-' },
      rules: [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs }],
    })
    await must(stage.ask(token, 'POST', `${rbac}/clusterroles`, role(['create'])))
    await refused(stage.ask(token, 'POST', `${rbac}/clusterroles`, role(['delete'])), 403)
  })

  test('a manager of users gives a disabled machine no role of its issuer back', async () => {
    const user = `${ours}/users/robot-off`
    const binding = `${rbac}/clusterrolebindings/all-robots`
    const bindAll = (entry: string) =>
      must(
        admin('POST', `${rbac}/clusterrolebindings`, {
          metadata: { name: 'all-robots' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-viewer' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: `platform:issuer:${entry}` }],
        }),
      )
    const rules = [{ verbs: ['patch', 'delete'], apiGroups: ['management.platform.sh'], resources: ['users'] }]
    await must(admin('POST', `${rbac}/clusterroles`, { metadata: { name: 'manage-machines' }, rules }))
    await bind('manage-machines', 'mia')
    const key = await must(admin('POST', keys, { spec: { user: 'mia' } }))
    const asMia = (method: string, patch?: object) =>
      stage.server.request(method, user, {
        key: key.spec.key,
        ...(patch ? { body: patch, headers: { 'content-type': 'application/merge-patch+json' } } : {}),
      })
    const spec = { username: 'scoped:robot-off', disabled: true }
    await must(admin('POST', `${ours}/users`, { metadata: { name: 'robot-off' }, spec }))

    await bindAll('scoped')
    await refused(asMia('PATCH', { spec: { disabled: false } }), 403)
    await refused(asMia('DELETE'), 403)
    assert.match(await stage.outcome(await other.sign({ sub: 'robot-off' })), /^401 /)

    await must(admin('DELETE', binding))
    await bindAll('ci')
    await must(asMia('PATCH', { spec: { disabled: false } }))
    await must(admin('DELETE', binding))
  })

  test('owns the objects that it creates', async () => {
    await must(
      admin('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'secret-maker' },
        rules: [{ apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'], verbs: ['create'] }],
      }),
    )
    await bind('secret-maker', 'ci:maker')
    const token = await issuer.sign({ sub: 'maker' })
    const path = `${ours}/namespaces/default/sharedsecrets`
    const { spec } = await must(stage.ask(token, 'POST', path, { metadata: { name: 'made' }, spec: {} }))
    assert.deepEqual(spec.owner, { user: 'ci:maker' })
    await must(stage.ask(token, 'GET', `${path}/made`))
  })

  test('a TokenReview shows its user, and the audit log records its requests', async () => {
    const token = await issuer.sign({ sub: 'reviewed', jti: 'job-1' })
    const body = { spec: { token } }
    const { spec, status } = await must(admin('POST', '/apis/authentication.k8s.io/v1/tokenreviews', body))
    assert.equal(spec.token, undefined)
    assert.equal(status.authenticated, true)
    assert.equal(status.user.username, 'ci:reviewed')
    assert.match(status.user.extra['authentication.platform.sh/key-uid'][0], /^jwt:[0-9a-f]{16}:job-1$/)
    const bad = await must(
      admin('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
        spec: { token: `${token.slice(0, -8)}AAAAAAAA` },
      }),
    )
    assert.equal(bad.status.authenticated, false)
    await refused(stage.ask(token, 'POST', teams, { metadata: { name: 'audited' } }), 403)
    const log = () => readFileSync(join(stage.server.directory, 'audit.log'), 'utf8')
    await soon('the audit log has the request', async () => /"username":"ci:reviewed"/.test(log()))
    for (const part of token.split('.')) assert.ok(!log().includes(part), 'the audit log contains a part of a token')
  })

  test('may impersonate only with the permission to', async () => {
    const as = { 'Impersonate-User': 'ada' }
    const token = await issuer.sign({ sub: 'actor' })
    await refused(stage.ask(token, 'POST', self, {}, as), 403)
    await bind('platform-admin', 'ci:actor')
    assert.equal((await must(stage.ask(token, 'POST', self, {}, as))).status.userInfo.username, 'ada')
    await refused(stage.ask(token, 'POST', tokens, { spec: {} }, as), 403)
  })

  test('mints direct-cluster tokens that end with its own token, and a gateway accepts them', async () => {
    const token = await issuer.sign({ sub: 'deployer', jti: 'a/b\n1', exp: seconds() + 120 })
    const { status } = await must(stage.ask(token, 'POST', tokens, { spec: { ttl: 3600 } }))
    const said = claimsIn(status.token)
    assert.equal(said.exp, claimsIn(token).exp)
    assert.equal(said.sub, 'ci:deployer')
    assert.equal(said['platform.sh'].kind, 'User')
    assert.match(said['platform.sh'].key, /^jwt:[0-9a-f]{16}:a%2Fb%0A1$/)
    const gateway = await startGateway(stage.server, {
      clusters: [{ name: 'prod', kubeconfig: stage.server.kubeconfig }],
    })
    try {
      const seen = () => gateway.request('POST', `/kubernetes/cluster/prod${self}`, { key: status.token, body: {} })
      assert.equal((await must(seen())).status.userInfo.username, 'ci:deployer')
      assert.equal((await gateway.request('GET', '/kubernetes/cluster/prod/api', { key: token })).status, 401)
      const revocation = { spec: { keyUID: said['platform.sh'].key } }
      await must(admin('POST', `${ours}/tokenrevocations`, revocation))
      await soon('the gateway rejects the revoked token', async () => (await seen()).status === 401)
    } finally {
      await gateway.stop()
    }
  })

  test('a direct-cluster token still gets the hint to use a gateway', async () => {
    const { status } = await must(stage.ask(await issuer.sign(), 'POST', tokens, { spec: {} }))
    assert.match(await stage.outcome(status.token), /^401 this is a direct-cluster token/)
  })

  test('the audit log names the user of a rejected token, if the issuer signed the token', async () => {
    await must(
      admin('POST', `${ours}/users`, { metadata: { name: 'off' }, spec: { username: 'ci:off', disabled: true } }),
    )
    const rejectedUser = async (token: string) => {
      const { status, headers } = await stage.ask(token)
      assert.equal(status, 401)
      let line: string | undefined
      await soon('the event is in the audit log', async () => {
        const log = readFileSync(join(stage.server.directory, 'audit.log'), 'utf8')
        line = log.split('\n').find(one => one.includes(String(headers['audit-id'])) && one.endsWith('}'))
        return line !== undefined
      })
      const { user, annotations } = JSON.parse(line ?? '')
      assert.deepEqual(user, {})
      return annotations['platform.sh/rejected-user']
    }
    assert.equal(await rejectedUser(await issuer.sign({ sub: 'off' })), 'ci:off')
    assert.equal(await rejectedUser(await issuer.sign({ sub: 'late', exp: seconds() - 60 })), 'ci:late')
    const cached = await issuer.sign({ sub: 'cached', exp: seconds() - 3 })
    assert.equal(await stage.outcome(cached), 'ci:cached')
    await soon('the cached token has expired', async () => (await stage.ask(cached)).status === 401)
    assert.equal(await rejectedUser(cached), 'ci:cached')
    const [head, body] = (await issuer.sign({ sub: 'late', exp: seconds() - 60 })).split('.')
    const [, , foreign] = (await issuer.sign({ sub: 'mallory' })).split('.')
    assert.equal(await rejectedUser([head, body, foreign].join('.')), undefined)
  })

  test('a watch ends when its token expires', async () => {
    await bind('platform-admin', 'ci:watcher')
    const token = await issuer.sign({ sub: 'watcher', exp: seconds() + 2 })
    const events = stage.server.watch(`${teams}?timeoutSeconds=120`, { key: token })
    for await (const _ of events);
    assert.match(await stage.outcome(token), /^401 the token has expired/)
  })
})
