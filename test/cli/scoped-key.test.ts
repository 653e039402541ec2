// A key with a narrow scope, as pipelines have them: what it may not ask is told, and what the server says anyway is used (D25).

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { openHome, signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn({ storage: 'memory' })
before(async () => {
  await home.ok('set secret db a=- --project shop', { stdin: 'canary-of-shop' })
  await home.ok('set secret app a=-', { stdin: 'canary-shared' })
})

const keyWith = async (name: string, scope: string) =>
  (await home.ok(`create accesskey ${name} --for-user ada --ttl 7d ${scope} -o connection`)).trim()

test('whoami tells a narrow key what the key is: whose, its scope and its end; teams are of its owner, and are not told', async () => {
  await home.ok('create team crew --user ada')
  const env = { PLATFORM_ACCESS_KEY: await keyWith('ci', '--scope-project shop') }
  assert.equal(await home.ok('whoami -o name', { env }), 'ada\n')
  assert.equal(
    await home.ok('whoami', { env }),
    [
      'User:      ada',
      `Server:    ${server.https}`,
      'Key:       ci',
      'Scope:     projects: shop',
      'Expires:   in 6d',
      'Teams:     not visible to a key with this scope; its owner can run platform whoami',
      '',
    ].join('\n'),
  )
  assert.match(await home.ok('status', { env }), /^User: +ada\nKey: +ci, expires in 6d$/m)
  const { key, ...rest } = JSON.parse(await home.ok('whoami -o json', { env }))
  assert.deepEqual(rest, { server: server.https, user: 'ada' }, 'what is not known is left out, and is no empty list')
  const { expiresAt, ...facts } = key
  assert.deepEqual(facts, { name: 'ci', scope: 'projects: shop', expires: 'in 6d' })
  const left = Date.parse(expiresAt) - Date.now()
  assert.ok(left > 6.9 * 86_400_000 && left <= 7 * 86_400_000, expiresAt)
})

test('whoami knows the scope of a key for a virtual cluster, of one without an end, and the team whose key it is', async () => {
  const made = await home.ok('create accesskey bot --for-team crew --scope-virtualcluster shop/dev -o connection')
  assert.deepEqual(
    (await home.ok('whoami', { env: { PLATFORM_ACCESS_KEY: made.trim() } }))
      .split('\n')
      .filter(one => !one.startsWith('Server')),
    [
      'User:      platform:team:crew',
      'Key:       bot',
      'Scope:     virtualClusters: shop/dev',
      'Expires:   never',
      'Team:      crew (key of the team)',
      '',
    ],
  )
})

test('platform-cli beside a project reads everything that its owner may, and whoever makes such a key or token is told', async () => {
  const wide =
    /warning: The role platform-cli can read everything that its owner can read, including the secrets of all projects\./
  const scope = '--scope-project shop --scope-role platform-cli'
  const key = await home.run(`create accesskey wide --ttl 7d ${scope} -o connection`)
  assert.match(key.stderr, wide)
  const env = { PLATFORM_ACCESS_KEY: key.stdout.trim() }
  assert.equal(
    await home.ok('get secret app.a -o value', { env }),
    'canary-shared',
    'which is no secret of that project',
  )
  assert.match((await home.run(`create token --scope-virtualcluster shop/dev --scope-role platform-cli`)).stderr, wide)
  for (const alone of ['--scope-project shop', '--scope-role platform-cli'])
    assert.doesNotMatch((await home.run(`create accesskey ${alone.slice(-4)} ${alone}`)).stderr, wide)
})

test('with platform-cli beside it the same key is told everything', async () => {
  const env = { PLATFORM_ACCESS_KEY: await keyWith('told', '--scope-project shop --scope-role platform-cli') }
  assert.match(await home.ok('whoami', { env }), /^Scope: +projects: shop; roles: platform-cli\nExpires: +in 6d$/m)
  assert.equal((await home.run('can-i get secrets --project other', { env })).stdout, 'no\n')
})

test('questions that its scope does not cover end with 5 and the way out', async () => {
  const env = { PLATFORM_ACCESS_KEY: await keyWith('asks', '--scope-project shop') }
  assert.equal(
    await home.fails(5, 'can-i get secrets --project shop', { env }),
    'platform: the scope of access key "asks" does not cover this question: use a key without a scope, or one with --scope-role platform-cli. The role platform-cli can read everything that its owner can read, including the secrets of all projects.\n',
  )
  for (const args of ['why get secrets --project shop', 'who-can get secrets'])
    assert.equal(
      await home.fails(5, args, { env }),
      'platform: the scope of access key "asks" does not cover this question: use a key without a scope\n',
    )
})

test('signed in with a narrow key, one knows who one is, and whose the key is that goes', async () => {
  const own = await openHome()
  await own.signIn(server, (await keyWith('narrow', '--scope-project shop')).replace(/@.*/, ''))
  assert.match(await own.ok('context list'), /\S+ +ada +default/)
  assert.match(await own.fails(2, 'delete accesskey narrow'), /this is the key you are signed in with\?/)
  await own.close()
})

test('a list with nothing in it says that a narrow key may be shown less, whichever list it is', async () => {
  const env = { PLATFORM_ACCESS_KEY: await keyWith('shown', '--scope-project empty') }
  const note = 'The scope of access key "shown" may hide objects.\n'
  for (const list of [
    'list teams',
    'list secrets',
    'list secrets -A',
    'list secrets --unused 0s',
    'list secrets -A --unused 0s',
    'list secrets --project empty --unused 0s',
    'list accesskeys',
  ]) {
    const { stdout, stderr } = await home.run(list, { env })
    assert.equal(stdout, '', list)
    assert.ok(stderr.endsWith(note), `${list}: ${stderr}`)
  }
})

test('list secrets -A has those of projects too; elsewhere it is said where they are', async () => {
  assert.match(
    await home.ok('list secrets -A'),
    /^NAMESPACE +NAME +KEYS +AGE\ndefault +app +1 +\S+\n\nNAMESPACE +NAME +KEYS +FROM +SYNCED +AGE\np-shop +db +1 +\S+\n$/,
  )
  assert.equal(await home.ok('list secrets -A -o name'), 'sharedsecret/app\nprojectsecret/db\n')
  assert.equal((await home.ok('list secrets -A --no-headers')).split('\n').length, 3)
  const { items } = JSON.parse(await home.ok('list secrets -A -o json'))
  assert.deepEqual(
    items.map((one: { kind: string; spec: { data: object } }) => [one.kind, Object.keys(one.spec.data)]),
    [
      ['SharedSecret', ['a']],
      ['ProjectSecret', ['a']],
    ],
  )
  const unused = JSON.parse(await home.ok('list secrets -A --unused 0s -o json')).items
  assert.deepEqual(
    unused.map((one: { kind: string; spec?: object }) => [one.kind, one.spec]),
    [
      ['SharedSecret', undefined],
      ['ProjectSecret', undefined],
    ],
  )
  assert.equal(await home.ok('list secrets -A --project shop -o name'), 'projectsecret/db\n')
  assert.equal(
    (await home.run('list secrets -n p-shop')).stderr,
    'No sharedsecrets found in namespace p-shop.\nTo list the secrets of the project: platform list secrets --project shop\n',
  )
  assert.equal(
    (await home.run('list secrets -A -l no=body')).stderr,
    'No sharedsecrets or projectsecrets found in any namespace.\n',
  )
})
