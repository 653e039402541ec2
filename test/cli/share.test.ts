// `platform share secret`: gives users and teams access to one secret, and takes it away again.

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn({ storage: 'memory' })
const ours = '/apis/management.platform.sh/v1'
const accessOf = async (name: string, path = `${ours}/namespaces/default/sharedsecrets`) =>
  (await server.request('GET', `${path}/${name}`)).body.spec.access ?? []
const keyOf = async (user: string) => (await home.ok(`create accesskey of-${user} --for-user ${user}`)).trim()

before(async () => {
  for (const team of ['web', 'ops']) await home.ok(`create team ${team} --user ${team}-member`)
  await home.ok('set secret db password=-', { stdin: 'canary-shared' })
})

test('shares for reading or writing, says what it did and how to undo it, and can be repeated', async () => {
  const env = { PLATFORM_ACCESS_KEY: await keyOf('web-member') }
  assert.match(await home.fails(5, 'get secret db.password', { env }), /cannot get/)
  assert.equal(
    await home.ok('share secret db --team web --user ada'),
    'sharedsecret/db shared: user ada and team web may read it\nUndo: platform share secret db --user ada --team web --remove\n',
  )
  assert.deepEqual(await accessOf('db'), [{ name: 'readers', verbs: ['get'], users: ['ada'], teams: ['web'] }])
  assert.equal(await home.ok('get secret db.password', { env }), 'canary-shared')
  assert.match(await home.fails(5, 'set secret db password=-', { env, stdin: 'canary-other' }), /cannot patch/)
  assert.equal(await home.ok('share secret db --team web'), 'sharedsecret/db unchanged: team web may already read it\n')
  assert.match(
    await home.ok('share secret db --team web --team ops --write'),
    /shared: team web and team ops may read and write it\n/,
  )
  assert.deepEqual(await accessOf('db'), [
    { name: 'readers', verbs: ['get'], users: ['ada'] },
    { name: 'writers', verbs: ['get', 'update', 'patch'], teams: ['web', 'ops'] },
  ])
  await home.ok('set secret db password=-', { env, stdin: 'canary-other' })
  assert.match(await home.ok('share secret db --team web'), /unchanged: team web may already read and write it/)
})

test('--remove takes the access away, after confirmation', async () => {
  const env = { PLATFORM_ACCESS_KEY: await keyOf('ops-member') }
  assert.match(await home.fails(2, 'share secret db --team ops --remove'), /Use --yes to confirm/)
  assert.equal(
    await home.ok('share secret db --team ops --remove --yes'),
    'sharedsecret/db no longer shared with team ops\n',
  )
  assert.match(await home.fails(5, 'get secret db.password', { env }), /cannot get/)
  assert.equal(
    await home.ok('share secret db --team ops --remove --yes'),
    'sharedsecret/db unchanged: not shared with team ops\n',
  )
  await home.ok('share secret db --team web --user ada --remove --yes')
  assert.deepEqual(await accessOf('db'), [])
})

test('keeps other access entries, and warns if one of them still grants access', async () => {
  const access = [{ verbs: ['get', 'delete'], users: ['ada', 'bob'] }]
  const spec = { access, data: {} }
  await server.request('POST', `${ours}/namespaces/default/sharedsecrets`, {
    body: { metadata: { name: 'own' }, spec },
  })
  await home.ok('share secret own --user eve')
  const { stderr } = await home.run('share secret own --user ada --user eve --remove --yes')
  assert.match(stderr, /warning: user ada still has access through spec\.access\[0\]; change it with kubectl edit/)
  assert.deepEqual(await accessOf('own'), access)
})

test('shares secrets of projects, and supports dry runs', async () => {
  const path = `${ours}/namespaces/p-shop/projectsecrets`
  await home.ok('set secret app token=- --project shop', { stdin: 'canary-project' })
  assert.match(
    await home.ok('share secret app --project shop --team web --dry-run=server'),
    /shared \(dry run\): team web may/,
  )
  assert.deepEqual(await accessOf('app', path), [])
  assert.equal(
    await home.ok('share secret app --project shop --team web'),
    'projectsecret/app shared: team web may read it\nUndo: platform share secret app --team web --project shop --remove\n',
  )
  assert.deepEqual(await accessOf('app', path), [{ name: 'readers', verbs: ['get'], teams: ['web'] }])
})

test('rejects missing recipients, teams and secrets', async () => {
  assert.match(await home.fails(2, 'share secret db'), /--user USER or --team TEAM is missing/)
  assert.match(
    await home.fails(2, 'share secret db --team web --write --remove --yes'),
    /--remove cannot be combined with --write/,
  )
  assert.match(
    await home.fails(3, 'share secret db --team wbe'),
    /team "wbe" not found: create it with platform create team wbe/,
  )
  assert.match(await home.fails(3, 'share secret nothing --team web'), /"nothing" not found/)
})
