// Objects of every kind through the command line: forms of output, exit codes, live changes.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { kinds } from '../../src/kinds/index.ts'
import { openHome, signedIn } from '../support/cli-home.ts'
import { withTerminal } from '../support/terminal.ts'
import { eventually } from '../support/wire.ts'

const { server, home } = await signedIn()

const team = (name: string, more = '') =>
  `apiVersion: management.platform.sh/v1\nkind: Team\nmetadata:\n  name: ${name}\n  labels: {tier: front}\nspec:\n  users: [ada]\n${more}`

test('every listable kind is listed, and its sample can be created, read and deleted', async () => {
  for (const kind of kinds.filter(one => one.served && one.verbs.includes('list'))) {
    await home.ok(`list ${kind.plural} -o json`)
    if (!kind.verbs.includes('delete')) continue
    const sample = { ...kind.sample, metadata: { ...(kind.sample['metadata'] as object), name: 'sample-of-kind' } }
    await home.ok('create -f -', { stdin: JSON.stringify(sample) })
    const space = kind.namespaced ? ((kind.sample['metadata'] as { namespace?: string }).namespace ?? 'default') : ''
    const at = space ? ` -n ${space}` : ''
    assert.match(await home.ok(`get ${kind.singular} sample-of-kind${at}`), /^NAME .*AGE\nsample-of-kind /)
    assert.equal(await home.ok(`get ${kind.id} sample-of-kind -o name${at}`), `${kind.singular}/sample-of-kind\n`)
    assert.match(await home.ok(`delete ${kind.singular} sample-of-kind --yes${at}`), /\/sample-of-kind deleted\n$/)
  }
})

test('a file may contain many objects; all are processed, and each failure is reported', async () => {
  writeFileSync(join(home.directory, 'teams.yaml'), `${team('one')}---\n# a comment\n---\n${team('two')}`)
  assert.equal(
    await home.ok('create -f teams.yaml --dry-run=server'),
    'team/one created (dry run)\nteam/two created (dry run)\n',
  )
  assert.equal(await home.ok('create -f teams.yaml'), 'team/one created\nteam/two created\n')
  const said = await home.fails(6, 'create -f teams.yaml')
  assert.match(said, /"one" already exists/)
  assert.match(said, /"two" already exists/)
  assert.match(
    await home.ok('list teams -l tier=front -o wide'),
    /^NAME +DISPLAY-NAME +USERS +GROUPS +OWNER +AGE\none +1 +0 +admin +\d+s\n/,
  )
  assert.equal(await home.ok('list teams -l tier=front -o name --no-headers'), 'team/one\nteam/two\n')
  assert.equal((await home.ok('list teams -l tier=front --no-headers')).split('\n').length, 3)
  const listed = JSON.parse(await home.ok('get teams one two -o json'))
  assert.deepEqual(
    listed.items.map((one: { metadata: { name: string } }) => one.metadata.name),
    ['one', 'two'],
  )
  assert.match(await home.ok('get team one -o yaml'), /^apiVersion: management.platform.sh\/v1\nkind: Team\n/)
})

test('create -f with -n rejects objects of another namespace, and creates nothing', async () => {
  const of = (name: string, namespace: string) =>
    `apiVersion: management.platform.sh/v1\nkind: SharedSecret\nmetadata: {name: ${name}, namespace: ${namespace}}\n`
  const stdin = `${of('one', 'here')}---\n${of('two', 'there')}`
  assert.match(
    await home.fails(2, 'create -f - -n here', { stdin }),
    /sharedsecret\/two has namespace there, but -n is here/,
  )
  assert.equal(await home.ok('list sharedsecrets -n here -o name'), '')
  await home.ok('create -f - -n here', { stdin: of('one', 'here') })
})

test('exit codes show the failure: 2 usage, 3 not found, 5 forbidden, 7 unavailable', async () => {
  assert.match(await home.fails(2, 'get teem x'), /unknown kind "teem"; did you mean team\?/)
  assert.match(await home.fails(2, 'gett team'), /did you mean platform get/)
  assert.match(await home.fails(2, 'get team one --outptu json'), /unknown flag --outptu; did you mean --output\?/)
  assert.match(await home.fails(2, 'get team one -o value'), /-o value prints/)
  assert.match(await home.fails(2, 'get tokens'), /are not stored, so there is nothing to list/)
  assert.match(await home.fails(2, 'create -f -', { stdin: 'kind: Team' }), /apiVersion is missing/)
  assert.match(await home.fails(2, 'create -f -', { stdin: 'a: [' }), /^platform: -: /)
  assert.match(await home.fails(2, 'create -f nothing.yaml'), /there is no such file/)
  assert.match(await home.fails(3, 'get team nobody'), /"nobody" not found/)
  const eve = await openHome()
  const at = '/apis/management.platform.sh/v1/ownedaccesskeys'
  const { body } = await server.request('POST', at, { body: { metadata: { name: 'eve' }, spec: { user: 'eve' } } })
  await eve.signIn(server, body.spec.key)
  assert.match(await eve.fails(5, 'get team one'), /forbidden/)
  await server.request('PATCH', `${at}/eve`, {
    body: { spec: { disabled: true } },
    headers: { 'Content-Type': 'application/merge-patch+json' },
  })
  assert.match(await eve.fails(4, 'get team one'), /disabled/)
  writeFileSync(
    join(eve.directory, '.config/platform/contexts.json'),
    JSON.stringify({ current: 'a', contexts: { a: { server: 'http://127.0.0.1:1', keyIn: 'file' } } }),
  )
  assert.match(await eve.fails(4, 'get team one'), /context "a" has no key/)
  assert.match(
    await eve.fails(7, 'get team one', { env: { PLATFORM_ACCESS_KEY: 'x'.repeat(40) } }),
    /connection refused/,
  )
  await eve.close()
})

test('an unknown field is rejected, as by kubectl', async () => {
  const said = await home.fails(1, 'create -f -', { stdin: team('strict', '  usres: [eve]\n') })
  assert.match(said, /strict decoding error: unknown field "spec.usres"/)
  await home.fails(3, 'get team strict')
})

test('a key or token created from a file is shown once, with a warning if the format omits it', async () => {
  const key = (name: string) =>
    JSON.stringify({ apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey', metadata: { name } })
  const made = await home.run('create -f -', { stdin: key('filed') })
  assert.equal(made.stderr, '')
  assert.match(made.stdout, /^ownedaccesskey\/filed created; shown only once: plat_\w{49}\n$/)
  assert.match(await home.ok('create -f - -o value', { stdin: key('valued') }), /^plat_\w{49}\n$/)
  const named = await home.run('create -f - -o name', { stdin: key('named') })
  assert.equal(named.stdout, 'ownedaccesskey/named\n')
  assert.match(named.stderr, /-o name does not print the key.*platform rotate accesskey named/)
  assert.match((await home.run('create accesskey other -o name')).stderr, /-o name does not print the key/)
  const token = JSON.stringify({
    apiVersion: 'management.platform.sh/v1',
    kind: 'DirectClusterEndpointToken',
    spec: {},
  })
  assert.match(await home.ok('create -f -', { stdin: token }), /created; shown only once: ey[\w.-]+\n$/)
  assert.equal(
    await home.ok('create -f - --dry-run=server', { stdin: key('dry') }),
    'ownedaccesskey/dry created (dry run)\n',
  )
})

test('an empty result is reported on standard error, with the location', async () => {
  const nothing = async (args: string) => {
    const { code, stdout, stderr } = await home.run(args)
    assert.deepEqual([code, stdout], [0, ''])
    return stderr
  }
  assert.equal(await nothing('list teams -l no=body'), 'No teams found.\n')
  assert.equal(await nothing('list secrets -n empty'), 'No sharedsecrets found in namespace empty.\n')
  assert.equal(await nothing('list secrets --project none'), 'No projectsecrets found in namespace p-none.\n')
  assert.equal(
    await nothing('list secrets -A -l no=body'),
    'No sharedsecrets or projectsecrets found in any namespace.\n',
  )
})

test('-w prints existing objects and every change, until it is stopped', async () => {
  const child = home.start(['get', 'teams', '-w', '-o', 'json'])
  let text = ''
  child.stdout?.on('data', chunk => {
    text += chunk
  })
  const until = async (wanted: RegExp) => {
    await eventually('it prints that', async () => wanted.test(text))
  }
  await home.run('create -f -', { stdin: team('early') })
  await until(/"ADDED".*"name":"early"/)
  await home.ok('create -f -', { stdin: team('watched') })
  await until(/"ADDED".*"name":"watched"/)
  await home.ok('delete team watched --yes')
  await until(/"DELETED".*"name":"watched"/)
  child.kill('SIGINT')
  await once(child, 'exit')
})

test('nothing is deleted without confirmation', async () => {
  await home.ok('create -f -', { stdin: team('kept') })
  assert.match(await home.fails(2, 'delete team kept'), /Delete team\/kept on .*--yes/)
  assert.equal(await home.ok('delete team kept --dry-run=server'), 'team/kept deleted (dry run)\n')
  assert.equal(await home.ok('get team kept -o name'), 'team/kept\n')
})

await withTerminal(() => {
  test('at a terminal a delete prompts: n means no, y means yes', async () => {
    for (const [answer, code] of [
      ['\r', 1],
      ['y\r', 0],
    ] as const) {
      const terminal = home.terminal('delete team kept')
      await terminal.sees(/Delete team\/kept on .*\[y\/N\] $/)
      terminal.type(answer)
      const ended = await terminal.ended
      assert.equal(ended.code, code, ended.text)
    }
    await home.fails(3, 'get team kept')
  })
})
