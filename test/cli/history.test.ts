// Versions of secrets through the command line: who changed what, what differs, and the way back (D35).

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { closeAll } from '../support/close-all.ts'
import { type Server, startServer } from '../support/server.ts'
import { withTerminal } from '../support/terminal.ts'
import { eventually } from '../support/wire.ts'

let server: Server
let home: CliHome
const set = (name: string, value: string, where = '') =>
  home.ok(`set secret ${name} password=-${where}`, { stdin: value })
before(async () => {
  server = await startServer()
  home = await openHome()
  await home.signIn(server)
  await set('db', 'canary-one')
  await home.ok('set secret db user=-', { stdin: 'shop' })
  await set('db', 'canary-two')
  await home.ok('unset secret db user --yes')
  await set('db', 'canary-one')
})
after(() => closeAll(home.close, server.stop))

test('history shows who changed which keys when, newest first, and never a value', async () => {
  const text = await home.ok('history secret db')
  assert.equal(
    text.replaceAll(/\d+s ago/g, 'now'),
    [
      'VERSION   TIME     AUTHOR   KEY     RESTORED   CHANGED',
      '5*        now   admin    admin   1          password',
      '4         now   admin    admin              user',
      '3         now   admin    admin              password',
      '2         now   admin    admin              user',
      '1         now   admin    admin              password',
      '',
    ].join('\n'),
  )
  const { versions } = JSON.parse(await home.ok('history secret db -o json')).status
  assert.deepEqual(
    versions.map((one: { number: number }) => one.number),
    [5, 4, 3, 2, 1],
  )
  assert.match(await home.ok('history secret db -o yaml'), / {2}versions:\n(?: .*\n)+? +number: 5\n/)
  assert.equal(await home.ok('history secret db -o name'), 'db@5\ndb@4\ndb@3\ndb@2\ndb@1\n')
  assert.equal((await home.ok('history secret db --no-headers')).split('\n').length, 6)
  assert.match(await home.fails(3, 'history secret nothing'), /"nothing" not found/)
})

test('get secret NAME@VERSION prints an earlier version, in every form of get secret', async () => {
  assert.equal(await home.ok('get secret db@3'), 'KEY        BYTES\npassword   10\nuser       4\n')
  assert.equal(await home.ok('get secret db@3 --all'), 'KEY        VALUE\npassword   canary-two\nuser       shop\n')
  for (const args of ['db@3.password', 'db.password@3', 'db@3 --key password', 'db@3.password -o value'])
    assert.equal(await home.ok(`get secret ${args}`), 'canary-two')
  assert.equal(await home.ok('get secret db@5.password'), 'canary-one')
  assert.equal(await home.ok('get secret db@3 -o name'), 'db@3\n')
  const { kind, spec, status } = JSON.parse(await home.ok('get secret db@3 -o json'))
  assert.deepEqual([kind, status.version.number], ['SecretVersion', 3])
  assert.equal(Buffer.from(spec.data.user, 'base64').toString(), 'shop')
  assert.match(await home.ok('get secret db@3 -o yaml'), /^kind: SecretVersion$/m)
  assert.deepEqual(JSON.parse(await home.ok('get secret db@3 --all -o json')), { password: 'canary-two', user: 'shop' })
  assert.match(await home.fails(3, 'get secret db@9'), /version 9 not found in sharedsecrets "db"; its history lists/)
  assert.match(await home.fails(3, 'get secret nothing@1'), /"nothing" not found/)
  assert.match(await home.fails(3, 'get secret db@1.user'), /has no key "user"; known keys: password/)
  for (const word of ['db@', 'db@x', 'db@0', '@3', 'db@3@4'])
    assert.match(await home.fails(2, ['get', 'secret', word]), /must be NAME\[@VERSION\]\[\.KEY\], such as db@3/)
  await set('dotted.name', 'canary-dotted')
  assert.equal(await home.ok('get secret dotted.name@1.password'), 'canary-dotted')
  await set('db', 'canary-project', ' --project shop')
  assert.equal(await home.ok('get secret db@1.password --project shop'), 'canary-project')
})

test('diff shows which keys differ, without their values: 0 equal, 1 different', async () => {
  const differs = await home.run('diff secret db@1 db@3')
  assert.deepEqual(
    [differs.code, differs.stdout],
    [
      1,
      '    KEY        db@1             db@3\n~   password   *** (10 bytes)   *** (10 bytes)\n+   user                        *** (4 bytes)\n',
    ],
  )
  const back = await home.run('diff secret db@2 db')
  assert.deepEqual(
    [back.code, back.stdout],
    [
      1,
      '    KEY        db@2             db\n=   password   *** (10 bytes)   *** (10 bytes)\n-   user       *** (4 bytes)\n',
    ],
  )
  assert.equal((await home.run('diff secret db@1')).code, 0, 'with what is there now')
  const { code, stdout } = await home.run('diff secret db@1 db@3 -o json')
  assert.equal(code, 1)
  assert.deepEqual(JSON.parse(stdout), {
    from: { name: 'db', version: 1 },
    to: { name: 'db', version: 3 },
    equal: false,
    keys: [
      { key: 'password', change: 'changed' },
      { key: 'user', change: 'added' },
    ],
  })
  for (const text of [differs.stdout, back.stdout, stdout]) assert.doesNotMatch(text, /canary|shop/)
})

test('missing versions and invalid version names are reported', async () => {
  assert.match(await home.fails(3, 'diff secret db@1 db@9'), /version 9 not found in sharedsecrets "db"/)
  assert.match(await home.fails(2, 'diff secret db@x db@1'), /"db@x" must be NAME or NAME@VERSION, such as db@3/)
  assert.match(await home.fails(2, 'rollback secret db'), /"db" must be NAME@VERSION, such as db@3/)
  assert.match(await home.fails(3, 'rollback secret db@9 --yes'), /version 9 not found/)
  assert.match(await home.fails(2, 'rollback secret db@3'), /--yes/)
})

test('rollback writes all data of a version, and nothing else, as a new version', async () => {
  assert.equal(
    await home.ok('rollback secret db@3 --dry-run=server'),
    'sharedsecret/db would be rolled back to version 3: password changed, user added\n',
  )
  assert.equal(
    await home.ok('rollback secret db@3 --yes'),
    'sharedsecret/db rolled back to version 3: password changed, user added\n',
  )
  assert.equal(await home.ok('get secret db.password'), 'canary-two')
  assert.equal(await home.ok('get secret db.user'), 'shop')
  assert.equal((await home.run('diff secret db@3 db@6')).code, 0)
  assert.equal(
    await home.ok('rollback secret db@1 --yes'),
    'sharedsecret/db rolled back to version 1: password changed, user removed\n',
  )
  assert.match(await home.fails(3, 'get secret db.user'), /has no key "user"/)
  assert.equal(await home.ok('rollback secret db@5 --yes'), 'sharedsecret/db unchanged: already equal to version 5\n')
  assert.match(await home.ok('history secret db --no-headers'), /^7\* /)
})

test('secrets of a project have a history too; one that follows another has none and cannot be rolled back', async () => {
  await set('app', 'canary-one', ' --project shop')
  await set('app', 'canary-two', ' --project shop')
  assert.equal(await home.ok('history secret app --project shop -o name'), 'app@2\napp@1\n')
  assert.equal((await home.run('diff secret app@1 app@2 --project shop')).code, 1)
  assert.match(
    await home.ok('rollback secret app@1 --project shop --yes'),
    /^projectsecret\/app rolled back to version 1/,
  )
  assert.equal(await home.ok('get secret app.password --project shop'), 'canary-one')
  const ref = { spec: { sharedSecretRef: { name: 'db' } } }
  await server.request('PATCH', '/apis/management.platform.sh/v1/namespaces/p-shop/projectsecrets/app', {
    body: ref,
    headers: { 'Content-Type': 'application/merge-patch+json' },
  })
  // Until it is copied, the copying itself comes in between.
  await eventually('it is copied', async () =>
    /"lastSynced"/.test(await home.ok('get secret app --project shop -o json')),
  )
  assert.match(await home.fails(1, 'rollback secret app@2 --project shop --yes'), /spec.data/)
})

test('a caller who may read a secret but not its history gets exit code 5', async () => {
  const eve = await openHome()
  await eve.signIn(server, (await home.ok('create accesskey eve --for-user eve')).trim())
  const access = [{ verbs: ['get'], users: ['eve'] }]
  await server.request('PATCH', '/apis/management.platform.sh/v1/namespaces/default/sharedsecrets/db', {
    body: { spec: { access } },
    headers: { 'Content-Type': 'application/merge-patch+json' },
  })
  assert.equal(await eve.ok('get secret db.password'), 'canary-one')
  assert.match(await eve.fails(5, 'history secret db'), /forbidden/)
  await eve.close()
})

await withTerminal(() => {
  test('at a terminal a rollback shows its changes and prompts', async () => {
    const terminal = home.terminal('rollback secret db@3')
    await terminal.sees(/password changed, user added.*\[y\/N\] $/s)
    terminal.type('n\r')
    const { code, text } = await terminal.ended
    assert.equal(code, 1)
    assert.match(text, /nothing was changed/)
    assert.equal(await home.ok('get secret db.password'), 'canary-one')
  })
})
