// Users on the command line: list, link, offboard and enable (D63, D65).

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openHome, signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn()
const ada = await openHome()
after(() => ada.close())
await ada.signIn(server, (await home.ok('create accesskey ada --for-user ada')).trim())

const issuer = 'https://login.example'

test('link user creates the User, links it, and list users shows it', async () => {
  await home.fails(2, 'link user grace')
  await home.ok(`link user corp:grace --provider corp --subject 42 --issuer ${issuer} --dry-run server`)
  assert.doesNotMatch(await home.ok('list users'), /corp:grace/)
  const linked = await home.ok(`link user corp:grace --provider corp --subject 42 --issuer ${issuer}`)
  assert.match(linked, /^user\/corp-grace-[0-9a-f]{8} linked to 42 at corp\n$/)
  await home.ok(`link user corp:grace --provider corp --subject 42 --issuer ${issuer}`)
  const table = await home.ok('list users')
  assert.match(table, /^NAME +USERNAME +DISPLAY-NAME +DISABLED +LAST-ACTIVITY/)
  assert.match(table, /corp-grace-\w+ +corp:grace +/)
  const { items } = JSON.parse(await home.ok('list users -o json'))
  assert.equal(items[0].status.identities.length, 1)
  await home.fails(6, `link user other --provider corp --subject 42 --issuer ${issuer}`)
})

test('offboard disables the user, and lists what the user owns', async () => {
  const body = { metadata: { name: 'db' }, spec: { owner: { user: 'ada' } } }
  const path = '/apis/management.platform.sh/v1/namespaces/default/sharedsecrets'
  assert.equal((await server.request('POST', path, { body })).status, 201)
  await ada.ok('whoami')
  assert.match(await home.fails(2, 'offboard ada'), /Use --yes/)
  const left = await home.ok('offboard ada --yes')
  assert.match(left, /^user\/ada created, disabled\nada still owns:\n/)
  assert.match(left, /sharedsecret +default +db\n/)
  assert.match(left, /ownedaccesskey +ada\n/)
  assert.match(await ada.fails(4, 'list teams'), /disabled/)
  assert.match(await home.ok('offboard ada --yes'), /^user\/ada unchanged: it is disabled already\n/)
  assert.match(await home.ok('offboard nobody --yes'), /nobody owns nothing that you can see\n/)
})

test('enable user enables a disabled user, and shows which access keys work again', async () => {
  await home.ok('create accesskey paused --for-user ada')
  await home.ok('disable accesskey paused')
  assert.match(await home.ok('enable user ada --dry-run server'), /^user\/ada enabled \(dry run\)\n/)
  assert.match(await ada.fails(4, 'list teams'), /disabled/)
  assert.equal(
    await home.ok('enable user ada'),
    [
      'user/ada enabled',
      'ada can sign in again. Sessions and direct-cluster tokens from before stay invalid.',
      'ACCESS-KEY   STATE',
      'ada          works again',
      'paused       disabled; platform enable accesskey paused enables it',
      '',
    ].join('\n'),
  )
  await ada.ok('whoami')
  assert.equal(await home.ok('enable user ada'), 'user/ada unchanged: it is not disabled\n')
})

test('enable user takes a username or the name of a User', async () => {
  const shown = await home.ok('offboard corp:linus --yes')
  const [, name = ''] = /^user\/(\S+) created/.exec(shown) ?? []
  assert.match(name, /^corp-linus-/)
  const enabled = await home.ok(['enable', 'user', name])
  assert.match(enabled, /^user\/corp-linus-\w+ enabled\ncorp:linus can sign in again.*\ncorp:linus has no access keys/)
  await home.ok('offboard corp:linus --yes')
  assert.match(await home.ok('enable user corp:linus'), /^user\/corp-linus-\w+ enabled\n/)
  assert.match(await home.fails(3, 'enable user corp:missing'), /user "corp:missing" not found.*platform list users/)
  await home.fails(2, 'enable user')
})

test('enable user says what a caller with too few permissions needs', async () => {
  await home.ok('offboard ada --yes')
  const grace = await openHome()
  try {
    await grace.signIn(server, (await home.ok('create accesskey grace --for-user grace')).trim())
    assert.match(await grace.fails(5, 'enable user ada'), /users.* is forbidden/)
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const rules = [{ verbs: ['*'], apiGroups: ['management.platform.sh'], resources: ['users'] }]
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'user-managers' }
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'grace' }]
    for (const [plural, body] of [
      ['clusterroles', { metadata: { name: 'user-managers' }, rules }],
      ['clusterrolebindings', { metadata: { name: 'grace' }, roleRef, subjects }],
    ] as const)
      assert.equal((await server.request('POST', `${rbac}/${plural}`, { body })).status, 201)
    const said = await grace.fails(5, 'enable user ada')
    assert.match(said, /user "ada" has permissions that user "grace" does not have/)
    assert.match(said, /every permission that the user gets back: .* any group that the identity provider may give/)
    assert.match(said, /ask an administrator\n$/)
  } finally {
    await grace.close()
  }
})
