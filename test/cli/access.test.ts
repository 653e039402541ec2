// Access keys, tokens, teams and questions about permissions through the command line.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Resource } from '../../src/api/object.ts'
import { flagsOf } from '../../src/cli/keys/access-key-lifecycle.ts'
import { openHome, signedIn } from '../support/cli-home.ts'
import { eventually } from '../support/wire.ts'

const { server, home } = await signedIn()

const whoami = (key: string) =>
  server.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {}, key })

test('create prints a key once, alone on standard output, and the key works', async () => {
  const { stdout, stderr } = await home.run('create accesskey ci --ttl 7d --for-user ada --description pipeline')
  assert.match(stdout, /^plat_\w{49}\n$/)
  assert.equal(stderr, 'ownedaccesskey/ci created; the key is shown only once\n')
  assert.equal((await whoami(stdout.trim())).body.status.userInfo.username, 'ada')
  const stored = JSON.parse(await home.ok('get accesskey ci -o json'))
  assert.deepEqual([stored.spec.ttl, stored.spec.user, stored.spec.key], [604_800, 'ada', undefined])
})

test('-o connection contains everything that a pipeline needs', async () => {
  const connection = await home.ok('create accesskey pipeline -o connection')
  const other = await openHome()
  assert.equal(await other.ok('whoami -o name', { env: { PLATFORM_ACCESS_KEY: connection.trim() } }), 'admin\n')
  await other.close()
})

test('scopes come from flags; all invalid ones are reported together', async () => {
  await home.ok(
    'create accesskey scoped --scope-project shop --scope-virtualcluster shop/dev --scope-role platform-cli --scope-cluster edge --scope-space shop/web',
  )
  assert.deepEqual(JSON.parse(await home.ok('get accesskey scoped -o json')).spec.scope, {
    projects: [{ project: 'shop' }],
    virtualClusters: [{ project: 'shop', virtualCluster: 'dev' }],
    roles: [{ role: 'platform-cli' }],
    clusters: [{ cluster: 'edge' }],
    spaces: [{ project: 'shop', space: 'web' }],
  })
  const said = await home.fails(2, 'create accesskey x --scope-virtualcluster dev --scope-space a/b/c')
  assert.match(said, /"dev" must be PROJECT\/NAME/)
  assert.match(said, /"a\/b\/c" must be PROJECT\/NAME/)
  assert.match(await home.fails(2, 'create accesskey x --ttl soon'), /"soon" must be a duration such as/)
  assert.match(
    await home.fails(2, 'create accesskey x --for-team a --for-user b'),
    /--for-team cannot be combined with --for-user/,
  )
  assert.equal(await home.ok('create accesskey x --dry-run=server'), '')
  await home.fails(3, 'get accesskey x')
})

test('list accesskeys shows owner, last use, expiry, scope and flags', async () => {
  const text = await home.ok('list accesskeys')
  assert.match(text, /^NAME +DISPLAY-NAME +OWNER +LAST-USE +EXPIRES +SCOPE +FLAGS\n/)
  assert.match(text, /^ci +ada +\d+s ago +in 6d +unscoped$/m)
  assert.match(text, /^scoped +admin +never +never +clusters: edge; projects: shop; roles: platform-cli; .*$/m)
  assert.match(await home.ok('list accesskeys -o name'), /^ownedaccesskey\/admin\n/)
})

test('list accesskeys supports labels, wide output and watches', async () => {
  assert.match(await home.ok('list accesskeys -o wide'), /^NAME +DISPLAY-NAME +OWNER/)
  assert.equal((await home.run('list accesskeys -l no=body')).stderr, 'No ownedaccesskeys found.\n')
  const child = home.start(['list', 'accesskeys', '-w'])
  let text = ''
  child.stdout?.on('data', chunk => {
    text += chunk
  })
  await eventually('it prints that', async () => /^ADDED +ci /m.test(text))
  child.kill('SIGINT')
  await once(child, 'exit')
})

test('the key itself shows unused, expiring, expired and disabled', () => {
  const now = Date.parse('2026-06-01T00:00:00Z')
  const key = (spec: object, created = '2026-05-31T00:00:00Z', status = {}) =>
    ({
      metadata: { creationTimestamp: created },
      spec: { scope: { roles: [{ role: 'agent' }] }, ...spec },
      status,
    }) as unknown as Resource
  assert.deepEqual(flagsOf(key({}), now), [])
  assert.deepEqual(flagsOf(key({}, '2026-01-01T00:00:00Z'), now), ['unused'])
  assert.deepEqual(flagsOf(key({}, '2026-01-01T00:00:00Z', { lastActivity: '2026-05-30T00:00:00Z' }), now), [])
  assert.deepEqual(flagsOf(key({ ttl: 90_000 }), now), ['expiring'])
  assert.deepEqual(flagsOf(key({ ttl: 3600 }), now), ['expired'])
  assert.deepEqual(flagsOf(key({ disabled: true, scope: {} }), now), ['disabled', 'unscoped'])
  assert.deepEqual(
    flagsOf(
      key({ ttl: 90_000, ttlAfterLastActivity: true }, '2026-05-01T00:00:00Z', {
        lastActivity: '2026-05-31T23:00:00Z',
      }),
      now,
    ),
    [],
  )
})

test('rotate with an overlap keeps the old key for a while; without one, it prompts', async () => {
  const old = (await home.ok('create accesskey turning')).trim()
  const key = (await home.ok('rotate accesskey turning --overlap 1h')).trim()
  assert.notEqual(key, old)
  assert.deepEqual([(await whoami(old)).status, (await whoami(key)).status], [201, 201])
  assert.match(await home.fails(2, 'rotate accesskey turning'), /--yes/)
  const running = await home.run('rotate accesskey turning --yes')
  assert.equal(running.code, 6)
  assert.match(running.stderr, /is valid until \S+Z, .*; use --force to end it now and revoke its tokens\n$/)
  assert.deepEqual([(await whoami(old)).status, (await whoami(key)).status], [201, 201])
  assert.match(
    await home.fails(2, 'rotate accesskey turning --overlap 1h --force'),
    /invalidate its old keys immediately\? .*--yes/,
  )
  const last = (await home.ok('rotate accesskey turning --yes --force')).trim()
  assert.deepEqual(await Promise.all([old, key, last].map(async one => (await whoami(one)).status)), [401, 401, 201])
})

test('rotating the key in use keeps the user signed in', async () => {
  const own = await openHome()
  await own.signIn(server, (await home.ok('create accesskey own')).trim())
  await own.ok('rotate accesskey own --yes')
  assert.equal(await own.ok('whoami -o name'), 'admin\n')
  await own.close()
})

test('a new key that could not be stored is printed, so that a full disk locks nobody out', async () => {
  const own = await openHome()
  await own.signIn(server, (await home.ok('create accesskey unkept')).trim())
  mkdirSync(join(own.directory, `.config/platform/contexts.json.${process.pid}.tmp`)) // where it is written first
  const { code, stdout, stderr } = await own.run('rotate accesskey unkept --yes')
  assert.equal(code, 1, stderr)
  assert.match(
    stderr,
    /context "127\.0\.0\.1" still has the old key: .*; run platform login https:\S+ with the new key/,
  )
  assert.equal((await whoami(stdout.trim())).status, 201)
  await own.close()
})

test('whoami of a team key shows the team, the scope and the expiry', async () => {
  await home.ok('create team keyed')
  const make = async (name: string, more: string) =>
    (await home.ok(`create accesskey ${name} --for-team keyed -o connection${more}`)).trim()
  const env = { PLATFORM_ACCESS_KEY: await make('of-team', ' --ttl 7d --scope-role platform-cli') }
  const told = await home.ok('whoami', { env })
  assert.match(told, /^Team: +keyed \(key of the team\)$/m)
  assert.match(told, /^Scope: +roles: platform-cli\nExpires: +in [67]d/m)
  const wide = { PLATFORM_ACCESS_KEY: await make('of-team-too', '') }
  assert.match(await home.ok('whoami', { env: wide }), /^Scope: +all permissions of its owner\nExpires: +never$/m)
})

test('whoami shows the expiry of the secret in use: the old one expires with the overlap, the new one with its key', async () => {
  for (const [name, more, life] of [
    ['turned-ending', '--ttl 7d', 'in [67]d'],
    ['turned-lasting', '', 'never'],
    ['turned-confined', '--ttl 7d --scope-project shop', 'in [67]d'],
    ['turned-reading', '--ttl 7d --scope-role platform-cli', 'in [67]d'],
  ] as const) {
    const old = (await home.ok(`create accesskey ${name} ${more}`.trim())).trim()
    const next = (await home.ok(`rotate accesskey ${name} --overlap 1h`)).trim()
    const ofOld = await home.ok('whoami', { env: { PLATFORM_ACCESS_KEY: old } })
    assert.match(ofOld, /^Expires: +in (1h|59m|60m)/m, `${name}: ${ofOld}`)
    const ofNew = await home.ok('whoami', { env: { PLATFORM_ACCESS_KEY: next } })
    assert.match(ofNew, new RegExp(`^Expires: +${life}`, 'm'), name)
  }
})

test('control characters of other users are shown as marks', async () => {
  const group = 'a\x1b[2Jb\rc'
  await home.ok(['create', 'team', 'escapes', '--group', group])
  const at = '/apis/management.platform.sh/v1/ownedaccesskeys'
  const { body } = await server.request('POST', at, {
    body: { metadata: { name: 'escapes' }, spec: { user: 'eva\x1b[2J', groups: [group] } },
  })
  const env = { PLATFORM_ACCESS_KEY: body.spec.key }
  for (const args of [['whoami'], ['status'], ['why', 'get', 'team', 'escapes'], ['why', 'get', 'team', group]]) {
    const { stdout, stderr } = await home.run(args, { env })
    assert.equal(/[\x00-\x08\x0b-\x1f]/.test(stdout + stderr), false, JSON.stringify(stdout + stderr))
  }
  assert.match(await home.ok('whoami', { env }), /through group a�\[2Jb�c/)
})

test('list accesskeys selects by owner and state, and shows display names', async () => {
  await home.ok('create accesskey listed-ada --for-user lister --display-name Laptop')
  await home.ok('create accesskey listed-off --for-user lister')
  await home.ok('disable accesskey listed-off')
  await home.ok('create team listers')
  await home.ok('create accesskey listed-team --for-team listers')
  const names = async (flags: string) =>
    (await home.ok(`list accesskeys ${flags} --no-headers`))
      .split('\n')
      .map(line => line.split(' ')[0])
      .filter(Boolean)
  assert.deepEqual(await names('--user lister'), ['listed-ada', 'listed-off'])
  assert.deepEqual(await names('--team listers'), ['listed-team'])
  assert.deepEqual(await names('--user lister --disabled'), ['listed-off'])
  const { items } = JSON.parse(await home.ok('list accesskeys --user lister -o json'))
  assert.equal(items.length, 2)
  assert.equal(
    await home.ok('list accesskeys --user lister -o name'),
    'ownedaccesskey/listed-ada\nownedaccesskey/listed-off\n',
  )
  assert.match(
    await home.ok('list accesskeys --user lister'),
    /^NAME +DISPLAY-NAME +OWNER .*\nlisted-ada +Laptop +lister /,
  )
  assert.match(await home.fails(2, 'list accesskeys --user a --team b'), /--user cannot be combined with --team/)
  const { stdout, stderr } = await home.run('list accesskeys --user nobody')
  assert.deepEqual([stdout, stderr], ['', 'No ownedaccesskeys found.\n'])
})

test('--secret and --scope-project PROJECT:ro build the scope', async () => {
  const sent = async (flags: string) => {
    const { stderr, stdout, code } = await home.run(`create accesskey scoped-secret ${flags} --dry-run=server -o json`)
    return { code, text: stdout + stderr }
  }
  assert.match((await sent('--scope-project shop:rw')).text, /--scope-project: "shop:rw" must be PROJECT or PROJECT:ro/)
  assert.match((await sent('--secret a/b/c')).text, /--secret: "a\/b\/c" must be NAME or PROJECT\/NAME/)
  await home.ok('create accesskey for-secrets --secret db --secret shop/db --scope-project web:ro')
  assert.deepEqual(JSON.parse(await home.ok('get accesskey for-secrets -o json')).spec.scope, {
    projects: [{ project: 'web', readOnly: true }],
    secrets: [
      { namespace: 'default', name: 'db' },
      { project: 'shop', name: 'db' },
    ],
  })
})

test('a key for one secret reads it, and no other', async () => {
  for (const name of ['for-key', 'not-for-key']) await home.ok(`set secret ${name} pw=hush`)
  const key = (await home.ok('create accesskey one-secret --secret for-key -o connection')).trim()
  const env = { PLATFORM_ACCESS_KEY: key }
  const other = await openHome()
  try {
    assert.equal(await other.ok('get secret for-key.pw', { env }), 'hush')
    assert.match(await other.fails(5, 'get secret not-for-key.pw', { env }), /forbidden/)
    assert.match(await other.fails(5, 'set secret for-key pw=other', { env }), /forbidden/)
  } finally {
    await other.close()
  }
})

test('disable and enable affect the next request', async () => {
  await home.ok('create accesskey switched')
  assert.equal(await home.ok('disable accesskey switched'), 'ownedaccesskey/switched disabled\n')
  const rotated = await home.run('rotate accesskey switched --yes')
  assert.match(
    rotated.stderr,
    /^platform: warning: ownedaccesskey\/switched is disabled, and so is the new key: platform enable accesskey switched$/m,
  )
  const key = rotated.stdout.trim()
  assert.equal((await whoami(key)).status, 401)
  assert.equal(await home.ok('enable accesskey switched'), 'ownedaccesskey/switched enabled\n')
  assert.equal((await whoami(key)).status, 201)
  assert.match(await home.ok('delete accesskey switched --yes'), /deleted/)
})

test('a token is a signed JWT with the requested scope and lifetime', async () => {
  const token = await home.ok('create token --ttl 10m --scope-cluster edge')
  const [, claims = ''] = token.split('.')
  const { iat, exp, 'platform.sh': own } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  assert.deepEqual([exp - iat, own.scope], [600, { clusters: [{ cluster: 'edge' }] }])
  assert.match(await home.fails(1, 'create token --ttl 2w'), /--ttl "2w": .* at most 86400 seconds \(24h\)/)
})

test('the kubectl warning about tokens is not shown here, because the token is printed', async () => {
  const stdin = 'apiVersion: management.platform.sh/v1\nkind: DirectClusterEndpointToken\n'
  for (const args of ['create token', 'create -f -', 'create -f - -o value']) {
    const { stdout, stderr } = await home.run(args, { stdin })
    assert.match(stdout, /eyJ/)
    assert.equal(stderr, '')
  }
})

test('teams are created with members, and concurrent changes of members are kept', async () => {
  assert.equal(await home.ok('create team web --user ada --group front --display-name Web'), 'team/web created\n')
  await Promise.all(['b', 'c', 'd'].map(user => home.ok(`team add-user web ${user}`)))
  assert.equal(await home.ok('team add-group web back'), 'team/web changed\n')
  assert.equal(await home.ok('team remove-group web front --yes'), 'team/web changed\n')
  assert.equal(await home.ok('team remove-user web ada --yes'), 'team/web changed\n')
  assert.equal(await home.ok('team remove-user web ada'), 'team/web unchanged: ada is not a member\n')
  const { users, groups } = JSON.parse(await home.ok('get team web -o json')).spec
  assert.deepEqual([users.toSorted(), groups], [['b', 'c', 'd'], ['back']])
  assert.match(await home.fails(3, 'team add-user nobody ada'), /not found/)
})

test('a key of a team acts as the team', async () => {
  const key = (await home.ok('create accesskey deploy --for-team web --ttl 2w')).trim()
  assert.equal((await whoami(key)).body.status.userInfo.username, 'platform:team:web')
  assert.match(await home.ok('list accesskeys'), /^deploy +team web +/m)
})

test('--dry-run=server changes neither keys nor teams', async () => {
  assert.equal(await home.ok('team add-user web zoe --dry-run=server'), 'team/web changed (dry run)\n')
  assert.equal(await home.ok('disable accesskey deploy --dry-run=server'), 'ownedaccesskey/deploy disabled (dry run)\n')
  assert.equal(JSON.parse(await home.ok('get team web -o json')).spec.users.includes('zoe'), false)
  assert.equal(JSON.parse(await home.ok('get accesskey deploy -o json')).spec.disabled, undefined)
})

test('can-i, why and who-can respond from the server, with exit codes for scripts', async () => {
  const ada = await openHome()
  await ada.signIn(server, (await home.ok('create accesskey ada --for-user ada')).trim())
  assert.equal(await home.ok('can-i update team web'), 'yes\n')
  const no = await ada.run('can-i update team web')
  assert.deepEqual([no.code, no.stdout], [1, 'no\n'])
  assert.equal(await ada.ok('can-i get /livez'), 'yes\n')
  const { code, stdout } = await ada.run('why delete team web')
  assert.equal(code, 1)
  assert.match(stdout, /^denied\n {2}access key ada\n {2}acts as ada\n/)
  assert.match(await home.ok('why delete teams'), /^allowed: /)
  assert.equal((await home.run('why delete team web --user ada')).code, 1)
  assert.match(await home.ok('who-can update team web'), /user admin by ClusterRoleBinding platform-admin/)
  assert.match(await ada.fails(5, 'who-can update team web'), /can only explain their own access/)
  const warned = async (args: string) => (await home.run(args)).stderr
  const verbs = /^platform: warning: teams have no verb "frobnicate"; they have create, /
  assert.match(await warned('why frobnicate teams'), verbs)
  assert.match(await home.ok('why frobnicate teams'), /^allowed.*\n {2}teams have no verb "frobnicate"/)
  assert.match(await warned('who-can frobnicate teams'), verbs)
  assert.equal(
    await warned('why get teams/permisions'),
    'platform: warning: teams have no subresource "permisions"; did you mean permissions?\n',
  )
  for (const known of ['why get teams/permissions', 'why bind clusterroles', 'why create accessexplanations/others'])
    assert.equal(await warned(known), '')
  const spec = { resourceAttributes: { verb: 'get', group: 'management.platform.sh', resource: 'teems' } }
  const asked = await server.request('POST', '/apis/management.platform.sh/v1/accessexplanations', { body: { spec } })
  assert.match(String(asked.headers['warning']), /has no resource .*teems.*did you mean teams\?/)
  assert.match(asked.body.status.steps[0], /^this server has no resource "teems" in the group/)
  assert.match(await home.fails(2, 'can-i get teems'), /did you mean team/)
  assert.equal(JSON.parse(await home.ok('can-i get secrets --project shop -o json')).allowed, true)
  await ada.close()
})

test('why about another user contains no scope in any format, because no key is involved', async () => {
  const key = await home.ok('create accesskey narrow --ttl 1h --scope-role platform-cli -o connection')
  const narrow = { env: { PLATFORM_ACCESS_KEY: key.trim() } }
  const hasScope = async (form: string) => {
    const { stdout, stderr } = await home.run(`why delete team web ${form}`.trim())
    assert.equal(stderr, '')
    return /\bscope\b/.test(stdout)
  }
  for (const form of ['', '-o json', '-o yaml']) {
    assert.equal(await hasScope(form), true, `of one’s own key ${form}`)
    assert.equal(await hasScope(`--user grace ${form}`), false, form)
    assert.equal(await hasScope(`--user admin ${form}`), true, `by name, and by one’s own key all the same ${form}`)
  }
  const { code, stdout } = await home.run('why delete team web --user grace -o json')
  assert.equal(code, 1)
  assert.deepEqual(JSON.parse(stdout), {
    allowed: false,
    nearMisses: [],
    steps: ['acts as grace', 'no role, binding or right of the object allows it'],
  })
  assert.match((await home.run('why delete team web', narrow)).stderr, /use a key without a scope/)
})
