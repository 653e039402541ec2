// Findings of a hostile review of sign-in, each with the attack that worked.

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { after, before, beforeEach, suite, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { keys, openPeople, type PeopleStage, secretOf, self, teams } from './people-stage.ts'

const mergePatch = { 'content-type': 'application/merge-patch+json' }

suite('a hostile review of sign-in', () => {
  let stage: PeopleStage
  before(async () => {
    stage = await openPeople({ login: { lifetimes: { refreshAfter: '1s', refreshGrace: '1m', max: '1h' } } })
  })
  after(() => stage.close())
  beforeEach(() => {
    stage.provider.faults = {}
    stage.provider.accounts['ada'] = { groups: ['dev'] }
  })

  const signIn = async (account = 'ada') => {
    const browser = stage.browser()
    const page = await browser.signIn(account)
    assert.equal(page.status, 200, page.text)
    return browser
  }
  const status = async (key: string) => (await stage.ask('POST', self, {}, key)).status
  const nameOf = async (secret: string) =>
    (await stage.ask('POST', self, {}, secret)).body.status.userInfo.extra['authentication.platform.sh/key'][0]

  test('a direct-cluster token ends when the groups of its user would be too old', async () => {
    const secret = secretOf(await signIn())
    const { body } = await stage.ask(
      'POST',
      '/apis/management.platform.sh/v1/directclusterendpointtokens',
      { spec: { ttl: 3600 } },
      secret,
    )
    const left = Date.parse(body.status.expiresAt ?? body.status.expirationTimestamp) - Date.now()
    assert.ok(left <= 62_000, `${left} ms, but the groups count for 61 s: ${JSON.stringify(body)}`)
  })

  test('the owner cannot fill the metadata of a session, which its refresh needs', async () => {
    const secret = secretOf(await signIn())
    const path = `${keys}/${await nameOf(secret)}`
    for (const metadata of [
      { annotations: { note: 'x' } },
      { labels: { note: 'x' } },
      { finalizers: ['example.org/keep'] },
    ]) {
      const answer = await stage.server.request('PATCH', path, { key: secret, body: { metadata }, headers: mergePatch })
      assert.equal(answer.status, 403, answer.text)
    }
  })

  test('the owner can disable a session', async () => {
    const secret = secretOf(await signIn())
    const path = `${keys}/${await nameOf(secret)}`
    const other = secretOf(await signIn())
    const answer = await stage.server.request('PATCH', path, {
      key: other,
      body: { spec: { disabled: true } },
      headers: mergePatch,
    })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(await status(secret), 401)
  })

  test('a wrong answer of the provider does not suspend a sign-in for good', async () => {
    const secret = secretOf(await signIn())
    const { requests } = stage.provider
    for (const code of [400, 403, 404]) {
      stage.provider.faults = { status: code, only: '/token' }
      const earlier = requests['/token'] ?? 0
      await eventually('a refresh fails', async () => {
        assert.equal(await status(secret), 201)
        return (requests['/token'] ?? 0) > earlier
      })
    }
    stage.provider.faults = {}
    stage.provider.accounts['ada'] = { groups: ['ops'] }
    await eventually('the refresh works again', async () => (await stage.groupsOf(secret)).includes('corp:ops'))
  })

  test('another device gets no more time than the sign-in has left', async () => {
    const browser = await signIn()
    const verifier = randomBytes(32).toString('base64url')
    const query = new URLSearchParams({
      port: '40123',
      state: randomBytes(32).toString('base64url'),
      challenge: hash('sha256', verifier, 'base64url'),
      machine: 'laptop',
    })
    const page = await browser.open(`/auth/cli?${query}`)
    const answer = await browser.submit('/auth/cli', { ...page.fields, decision: 'approve' })
    const code = new URL(answer.headers.location ?? '').searchParams.get('code')
    const { text } = await browser.call('POST', '/auth/cli/token', { body: { code, verifier } })
    const { name } = JSON.parse(text)
    const root = (await stage.ask('GET', `${keys}/${await nameOf(secretOf(browser))}`)).body
    const derived = (await stage.ask('GET', `${keys}/${name}`)).body
    const end = (key: typeof root) => Date.parse(key.metadata.creationTimestamp) + key.spec.ttl * 1000
    assert.ok(end(derived) <= end(root) + 1000, `${end(derived)} > ${end(root)}`)
  })

  test('a pasted key does not end the sessions of its user', async () => {
    const secret = secretOf(await signIn())
    const made = await stage.ask('POST', keys, { spec: { scope: { projects: [{ project: 'p' }] } } }, secret)
    const browser = stage.browser()
    await browser.submit('/auth/key', { key: made.body.spec.key })
    await browser.submit('/auth/logout?everywhere=true', {})
    assert.equal(await status(secret), 201)
  })

  test('enabling a User does not revive its sessions', async () => {
    const secret = secretOf(await signIn('bob'))
    const { body } = await stage.ask(
      'GET',
      '/apis/management.platform.sh/v1/users?fieldSelector=spec.username=corp:bob',
    )
    const path = `/apis/management.platform.sh/v1/users/${body.items[0].metadata.name}`
    const set = (disabled: boolean) =>
      stage.server.request('PATCH', path, { body: { spec: { disabled } }, headers: mergePatch })
    assert.equal((await set(true)).status, 200)
    assert.equal(await status(secret), 401)
    await eventually('the session is deleted', async () => {
      const left = await stage.ask('GET', `${keys}?fieldSelector=spec.user=corp:bob`)
      return left.body.items.length === 0
    })
    assert.equal((await set(false)).status, 200)
    assert.equal(await status(secret), 401)
  })

  test('a manager of users cannot enable or delete a disabled User whose provider may give more groups', async () => {
    stage.provider.accounts['eva'] = { groups: ['operators'] }
    await signIn('eva')
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const users = '/apis/management.platform.sh/v1/users'
    const create = async (path: string, body: object) =>
      assert.equal((await stage.ask('POST', path, body)).status, 201, path)
    const bind = (name: string, role: string, subject: object) =>
      create(`${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', ...subject }],
      })
    await create(`${rbac}/clusterroles`, {
      metadata: { name: 'manage-users' },
      rules: [
        { verbs: ['get', 'patch', 'create', 'delete'], apiGroups: ['management.platform.sh'], resources: ['users'] },
      ],
    })
    await bind('mia', 'manage-users', { kind: 'User', name: 'mia' })
    const made = await stage.ask('POST', keys, { spec: { user: 'mia' } })
    const mia = made.body.spec.key as string
    const found = await stage.ask('GET', `${users}?fieldSelector=spec.username=corp:eva`)
    const path = `${users}/${found.body.items[0].metadata.name}`
    const set = (disabled: boolean, key?: string) =>
      stage.server.request('PATCH', path, {
        ...(key ? { key } : {}),
        body: { spec: { disabled } },
        headers: mergePatch,
      })
    assert.equal((await set(true)).status, 200)

    // No group of the provider holds anything, and groups of others do not matter.
    await bind('others', 'platform-viewer', { kind: 'Group', name: 'others' })
    assert.equal((await set(false, mia)).status, 200)
    assert.equal((await set(true, mia)).status, 200)

    // The disabled person has no session that would tell the groups.
    await bind('operators', 'platform-viewer', { kind: 'Group', name: 'corp:operators' })
    assert.equal((await set(false, mia)).status, 403)
    assert.equal((await stage.server.request('DELETE', path, { key: mia })).status, 403)
    // Without a User, people can sign in anyway.
    assert.equal(
      (await stage.ask('POST', users, { metadata: { name: 'new' }, spec: { username: 'corp:new' } }, mia)).status,
      201,
    )
    assert.equal((await stage.ask('DELETE', `${rbac}/clusterrolebindings/operators`)).status, 200)
    await create(teams, {
      metadata: { name: 'ops' },
      spec: { groups: ['corp:ops'], clusterRoles: [{ name: 'platform-viewer' }] },
    })
    assert.equal((await set(false, mia)).status, 403)
    assert.equal((await set(false)).status, 200)
  })

  test('invented codes write nothing to the store', async () => {
    const version = async () => (await stage.ask('GET', teams)).body.metadata.resourceVersion
    // A controller can still be writing for an earlier test. A code that is written would change every round.
    await eventually('three invented codes leave the store as it was', async () => {
      const before = await version()
      for (let count = 0; count < 3; count++) {
        const browser = stage.browser()
        const start = await browser.open('/auth/login/corp')
        const state = new URL(start.headers.location ?? '').searchParams.get('state') ?? ''
        const page = await browser.open(`/auth/callback/corp?${new URLSearchParams({ state, code: 'invented' })}`)
        assert.ok(page.status >= 400)
      }
      return (await version()) === before
    })
  })

  test('GET /auth is not an internal error', async () => {
    assert.equal((await stage.browser().open('/auth')).status, 404)
  })
})

suite('floods of sign-in requests', () => {
  let stage: PeopleStage
  before(async () => {
    stage = await openPeople({ args: ['--limits-auth-total', '30'] })
  })
  after(() => stage.close())

  test('do not stop the logout of a provider, nor people who are signed in', async () => {
    const browser = stage.browser()
    await browser.signIn('ada')
    const stranger = stage.browser()
    for (let count = 0; count < 40; count++) await stranger.open('/auth/login')
    assert.equal((await stranger.open('/auth/login')).status, 429)
    assert.equal((await browser.open('/auth/session')).status, 200)
    const token = await stage.provider.logoutToken({ sub: 'ada' })
    const answer = await stranger.submit('/auth/backchannel-logout/corp', { logout_token: token }, { accept: '*/*' })
    assert.equal(answer.status, 200, answer.text)
  })
})
