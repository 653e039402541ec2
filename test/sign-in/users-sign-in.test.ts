// People who sign in become Users: who gets which username, with and without a prefix (D63, D65).

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { must, ours, rbac, refused, secrets } from '../access/people.ts'
import type { Browser, Page } from './browser.ts'
import { keys, openPeople, type PeopleStage, secretOf, self, teams } from './people-stage.ts'

const users = `${ours}/users`
const merge = { 'Content-Type': 'application/merge-patch+json' }

/** The user of a browser's session. */
const whoIs = async (stage: PeopleStage, browser: Browser) =>
  (await must(stage.ask('POST', self, {}, secretOf(browser)))).status.userInfo.username

const signIn = async (stage: PeopleStage, account: string): Promise<{ browser: Browser; page: Page }> => {
  const browser = stage.browser()
  stage.provider.accounts[account] ??= {}
  return { browser, page: await browser.signIn(account) }
}

const patch = (stage: PeopleStage, name: string, spec: object) =>
  must(stage.server.request('PATCH', `${users}/${name}`, { body: { spec }, headers: merge }))

async function blocked(stage: PeopleStage, account: string, reason: string): Promise<Page> {
  const { browser, page } = await signIn(stage, account)
  assert.equal(page.status, 403, page.text)
  assert.equal(secretOf(browser), '')
  assert.match(page.text, new RegExp(`<code>${reason}</code>`))
  return page
}

suite('users of a provider with a prefix', () => {
  let stage: PeopleStage
  const userOf = async (username: string) =>
    (await must(stage.ask('GET', `${users}?fieldSelector=spec.username=${username}`))).items[0]
  before(async () => {
    stage = await openPeople()
  })
  after(() => stage.close())

  test('the first sign-in creates the User, later ones update its name and address', async () => {
    const { browser } = await signIn(stage, 'ada')
    assert.equal(await whoIs(stage, browser), 'corp:ada')
    const user = await userOf('corp:ada')
    assert.match(user.metadata.name, /^corp-ada-[0-9a-f]{8}$/)
    assert.equal(user.metadata.annotations?.['platform.sh/identity'], undefined)
    assert.equal(user.spec.displayName, 'Ada Lovelace')
    assert.equal(user.spec.email, 'ada@example.org')
    const [identity, ...others] = user.status.identities
    assert.deepEqual(others, [])
    assert.deepEqual([identity.provider, identity.issuer, identity.subject], ['corp', stage.provider.url, 'ada'])
    assert.ok(identity.since)
    stage.provider.accounts['ada'] = { ...stage.provider.accounts['ada'], name: 'Countess of Lovelace' }
    await signIn(stage, 'ada')
    const later = await userOf('corp:ada')
    assert.equal(later.spec.displayName, 'Countess of Lovelace')
    assert.equal(later.metadata.uid, user.metadata.uid)
  })

  test('people can be bound before their first sign-in', async () => {
    await must(stage.ask('POST', teams, { metadata: { name: 'early' }, spec: { users: ['corp:bob'] } }))
    await must(stage.ask('POST', users, { metadata: { name: 'bob' }, spec: { username: 'corp:bob' } }))
    const { browser } = await signIn(stage, 'bob')
    assert.ok((await stage.groupsOf(secretOf(browser))).includes('platform:team:early'))
    const user = await userOf('corp:bob')
    assert.equal(user.metadata.name, 'bob')
    assert.equal(user.status.identities[0].subject, 'bob')
  })

  test('concurrent first sign-ins of one person make one User', async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => signIn(stage, 'carl')))
    for (const { browser } of all) assert.equal(await whoIs(stage, browser), 'corp:carl')
    const { items } = await must(stage.ask('GET', `${users}?fieldSelector=spec.username=corp:carl`))
    assert.equal(items.length, 1)
    assert.equal(items[0].status.identities.length, 1)
  })

  test('a name of another identity is refused, without naming its holder', async () => {
    await must(stage.ask('POST', users, { metadata: { name: 'dave' }, spec: { username: 'corp:dave' } }))
    const spec = { provider: 'corp', subject: 'somebody-else' }
    const { status } = await must(stage.ask('POST', `${users}/dave/link`, { spec }))
    assert.equal(status.identities[0].issuer, stage.provider.url, 'the issuer of the configured provider')
    const page = await blocked(stage, 'dave', 'UsernameTaken')
    assert.match(page.text, /platform link user corp:dave --provider corp --subject dave/)
    assert.doesNotMatch(page.text, /somebody-else/)
  })

  test('a disabled User ends the session and its keys, and cannot sign in', async () => {
    const { browser } = await signIn(stage, 'erin')
    const own = await must(stage.ask('POST', keys, { metadata: { name: 'erin-ci' } }, secretOf(browser)))
    const { metadata } = await userOf('corp:erin')
    await patch(stage, metadata.name, { disabled: true })
    for (const key of [secretOf(browser), own.spec.key]) await refused(stage.ask('POST', self, {}, key), 401)
    await blocked(stage, 'erin', 'UserDisabled')
    await patch(stage, metadata.name, { disabled: false })
    assert.equal(await whoIs(stage, (await signIn(stage, 'erin')).browser), 'corp:erin')
  })

  test('a user who was disabled before the first sign-in cannot sign in', async () => {
    const spec = { username: 'corp:fred', disabled: true }
    await must(stage.ask('POST', users, { metadata: { name: 'fred' }, spec }))
    await blocked(stage, 'fred', 'UserDisabled')
    assert.equal((await userOf('corp:fred')).status.identities, undefined)
  })

  test('a deleted User ends the session; the same identity gets the same name again', async () => {
    const { browser } = await signIn(stage, 'gina')
    const { metadata } = await userOf('corp:gina')
    await must(stage.ask('DELETE', `${users}/${metadata.name}`))
    await refused(stage.ask('POST', self, {}, secretOf(browser)), 401)
    const again = await signIn(stage, 'gina')
    assert.equal(await whoIs(stage, again.browser), 'corp:gina')
    const user = await userOf('corp:gina')
    assert.notEqual(user.metadata.uid, metadata.uid)
    assert.equal(user.status.identities.length, 1)
    await refused(stage.ask('POST', self, {}, secretOf(browser)), 401)
  })

  test('an object of another user may have the name of the new User', async () => {
    await must(stage.ask('POST', users, { metadata: { name: 'hank' }, spec: { username: 'corp:other' } }))
    stage.provider.accounts['other'] = {}
    assert.equal(await whoIs(stage, (await signIn(stage, 'other')).browser), 'corp:other')
    assert.equal((await userOf('corp:other')).metadata.name, 'hank')
  })
})

suite('users of a provider without a prefix', () => {
  let stage: PeopleStage
  before(async () => {
    const claimMappings = { username: { claim: 'sub', prefix: '' }, groups: { claim: 'groups', prefix: 'corp:' } }
    stage = await openPeople({ login: { claimMappings } })
  })
  after(() => stage.close())

  test('a new name is free', async () => {
    const { browser } = await signIn(stage, 'ada')
    assert.equal(await whoIs(stage, browser), 'ada')
    assert.equal((await must(stage.ask('GET', `${users}/ada`))).spec.username, 'ada')
    await signIn(stage, 'ada')
  })

  test('a person named admin does not become the administrator', async () => {
    const page = await blocked(stage, 'admin', 'UsernameTaken')
    assert.doesNotMatch(page.text, /platform-admin/)
    const { items } = await must(stage.ask('GET', users))
    assert.ok(!items.some(({ spec }: { spec: { username: string } }) => spec.username === 'admin'))
  })

  test('a name that holds anything is refused: User, key, subject, binding, team, owner, access', async () => {
    const uses: { readonly [name: string]: (name: string) => Promise<unknown> } = {
      'by-user': name => must(stage.ask('POST', users, { metadata: { name } })),
      'by-key': name => must(stage.ask('POST', keys, { metadata: { name }, spec: { user: name, disabled: true } })),
      'by-subject': name => must(stage.ask('POST', keys, { metadata: { name }, spec: { subject: name } })),
      'by-binding': name =>
        must(
          stage.ask('POST', `${rbac}/namespaces/web/rolebindings`, {
            metadata: { name },
            roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-viewer' },
            subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
          }),
        ),
      'by-team': name => must(stage.ask('POST', teams, { metadata: { name: 'members' }, spec: { users: [name] } })),
      'by-owner': name => must(stage.ask('POST', secrets(), { metadata: { name }, spec: { owner: { user: name } } })),
      'by-access': name =>
        must(
          stage.ask('POST', secrets(), { metadata: { name }, spec: { access: [{ verbs: ['get'], users: [name] }] } }),
        ),
    }
    for (const [name, use] of Object.entries(uses)) {
      await use(name)
      await blocked(stage, name, 'UsernameTaken')
    }
  })

  test('an administrator links a name that is in use to the account', async () => {
    await must(stage.ask('POST', teams, { metadata: { name: 'ops' }, spec: { users: ['olaf'] } }))
    await blocked(stage, 'olaf', 'UsernameTaken')
    await must(stage.ask('POST', users, { metadata: { name: 'olaf' } }))
    await blocked(stage, 'olaf', 'UsernameTaken')
    await must(stage.ask('POST', `${users}/olaf/link`, { spec: { provider: 'corp', subject: 'olaf' } }))
    const { browser } = await signIn(stage, 'olaf')
    assert.ok((await stage.groupsOf(secretOf(browser))).includes('platform:team:ops'))
  })

  test('an account with another name signs in as the user that it is linked to', async () => {
    await must(stage.ask('POST', users, { metadata: { name: 'paul' } }))
    await must(stage.ask('POST', `${users}/paul/link`, { spec: { provider: 'corp', subject: 'p4711' } }))
    assert.equal(await whoIs(stage, (await signIn(stage, 'p4711')).browser), 'paul')
  })
})
