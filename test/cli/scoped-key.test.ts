// A key with a narrow scope, as in pipelines: errors explain the scope, and the key can ask about itself (D25).

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

test('whoami with a scoped key shows key, owner, scope, expiry and teams', async () => {
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
      'Team:      crew (reported by the server)',
      '',
    ].join('\n'),
  )
  assert.match(await home.ok('status', { env }), /^User: +ada\nKey: +ci, expires in 6d$/m)
  const { key, ...rest } = JSON.parse(await home.ok('whoami -o json', { env }))
  assert.deepEqual(rest, {
    server: server.https,
    user: 'ada',
    groups: ['system:authenticated', 'platform:user:ada', 'platform:team:crew'],
    teams: [{ name: 'crew', because: 'reported by the server' }],
  })
  const { expiresAt, ...facts } = key
  assert.deepEqual(facts, { name: 'ci', scope: 'projects: shop', expires: 'in 6d' })
  const left = Date.parse(expiresAt) - Date.now()
  assert.ok(left > 6.9 * 86_400_000 && left <= 7 * 86_400_000, expiresAt)
})

test('whoami shows a scope for a virtual cluster, a key without expiry, and the team of a key', async () => {
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

test('platform-cli lists, and reads data only where another entry covers it', async () => {
  const made = await home.run(
    'create accesskey told --ttl 7d --scope-project shop --scope-role platform-cli -o connection',
  )
  assert.doesNotMatch(made.stderr, /warning/)
  const env = { PLATFORM_ACCESS_KEY: made.stdout.trim() }
  assert.match(await home.ok('whoami', { env }), /^Scope: +projects: shop; roles: platform-cli\nExpires: +in 6d$/m)
  for (const [list, row] of [
    ['list teams', /^crew /m],
    ['get team crew', /^crew /m],
    ['list secrets', /^app /m],
    ['list secrets --project shop', /^db /m],
    ['list accesskeys', /^told +admin /m],
    ['list teams -o name', /^team\/crew$/m],
  ] as const)
    assert.match(await home.ok(list, { env }), row)
  assert.equal(await home.ok('get secret db.a --project shop -o value', { env }), 'canary-of-shop')
  for (const read of ['get secret app.a -o value', 'list secrets -o json', 'get team crew -o yaml'])
    assert.match(await home.fails(5, read, { env }), /the scope of access key "told" allows only metadata/)
  assert.equal((await home.run('can-i get secrets --project shop', { env })).stdout, 'yes\n')
  assert.equal((await home.run('can-i get secrets --project other', { env })).stdout, 'no\n')
})

test('can-i answers within the scope; other questions exit with 5 and a hint', async () => {
  const env = { PLATFORM_ACCESS_KEY: await keyWith('asks', '--scope-project shop') }
  await home.ok('create team askers --user ada')
  const { stdout, stderr } = await home.run('can-i list teams', { env })
  assert.equal(stdout, 'no\n')
  assert.match(stderr, /the scope of access key "asks" does not cover it/)
  for (const args of ['why get secrets --project shop', 'who-can get secrets'])
    assert.equal(
      await home.fails(5, args, { env }),
      'platform: the scope of access key "asks" does not cover this question: use a key without a scope, or platform can-i\n',
    )
})

test('a user signed in with a scoped key sees their identity, and the owner of a key before deleting it', async () => {
  const own = await openHome()
  await own.signIn(server, (await keyWith('narrow', '--scope-project shop')).replace(/@.*/, ''))
  assert.match(await own.ok('context list'), /\S+ +ada +default/)
  assert.match(await own.fails(2, 'delete accesskey narrow'), /this is the key you are signed in with\?/)
  await own.close()
})

test('an empty list says that the scope may hide objects, for every list', async () => {
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

test('list secrets -A includes secrets of projects; other lists say where those are', async () => {
  assert.match(
    await home.ok('list secrets -A'),
    /^NAMESPACE +NAME +DISPLAY-NAME +KEYS +AGE\ndefault +app +1 +\S+\n\nNAMESPACE +NAME +DISPLAY-NAME +KEYS +GLOBAL-SECRET +SYNCED +AGE\np-shop +db +1 +\S+\n$/,
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
