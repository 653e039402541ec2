// Destructive commands prompt first. The tests iterate over the table of commands, so that none is forgotten.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { shownCommands } from '../../docs/generate.ts'
import { helpOf } from '../../src/cli/help.ts'
import { openHome, signedIn } from '../support/cli-home.ts'
import { withTerminal } from '../support/terminal.ts'

const { server, home } = await signedIn()
before(async () => {
  await home.ok('create team web --user ada --user zoe --group front')
  await home.ok('create accesskey ci')
  await home.ok('connect cluster prod')
  await home.ok('set secret app A=- -n asks', { stdin: '1' })
  await home.ok('set secret app B=- -n asks', { stdin: '2' })
  await home.ok('share secret app --user ada -n asks')
  writeFileSync(join(home.directory, 'app.json'), '{"C":"3"}')
})

/** Each as a script would type it, and what the question names. */
const acts: { readonly [command: string]: readonly [args: string, question: RegExp] } = {
  login: ['login http://127.0.0.1:1 --context 127.0.0.1', /the context "127.0.0.1" is for https:/],
  'context delete': ['context delete 127.0.0.1', /Delete context "127.0.0.1" and its key from this machine\?/],
  'unset secret': ['unset secret app A -n asks', /Remove A from sharedsecret\/app in namespace asks on https:\S+\?/],
  'import secret': [
    'import secret app -f app.json --replace -n asks',
    /Set C of sharedsecret\/app in namespace asks on https:\S+ and remove A, B\?/,
  ],
  'rollback secret': [
    'rollback secret app@1 -n asks',
    /Roll sharedsecret\/app in namespace asks on https:\S+ back to version 1: B removed\?/,
  ],
  delete: ['delete secret app -n asks', /Delete sharedsecret\/app in namespace asks on https:\S+\?/],
  'share secret': [
    'share secret app --user ada --remove -n asks',
    /Stop sharing sharedsecret\/app in namespace asks on https:\S+ with user ada\?/,
  ],
  'team remove-user': ['team remove-user web ada', /Remove the user ada from team\/web on https:\S+\?/],
  'team remove-group': ['team remove-group web front', /Remove the group front from team\/web on https:\S+\?/],
  'rotate accesskey': [
    'rotate accesskey ci',
    /Rotate ownedaccesskey\/ci on https:\S+ and invalidate its old key immediately\?/,
  ],
  offboard: ['offboard ada', /ada/],
  'disconnect cluster': ['disconnect cluster prod --keep-cluster', /[Dd]isconnect .*prod|cluster\/prod/],
  'token revoke': ['token revoke --user ada --group front', /tokens of the user ada, and with the group front/],
}

test('every destructive command has --yes and documents it; no other command has it', async () => {
  const all = await shownCommands()
  const marked = all.filter(({ asksBefore }) => asksBefore)
  assert.deepEqual(marked.map(({ words }) => words.join(' ')).toSorted(), Object.keys(acts).toSorted())
  for (const command of all) {
    const name = command.words.join(' ')
    assert.equal('yes' in command.flags, command.asksBefore !== undefined, name)
    if (command.asksBefore) assert.match(helpOf(command), /\nAsks for confirmation before it .*--yes/, name)
  }
})

test('without a terminal each of them fails, names --yes, and does nothing', async () => {
  for (const [args, question] of Object.values(acts)) {
    const said = await home.fails(2, args, { stdin: server.adminKey })
    assert.match(said, question, args)
    assert.match(said, /--yes/, args)
  }
  const { users, groups } = JSON.parse(await home.ok('get team web -o json')).spec
  assert.deepEqual([users, groups], [['ada', 'zoe'], ['front']])
  assert.equal(await home.ok('get secret app -n asks --all -o json'), '{\n  "A": "1",\n  "B": "2"\n}\n')
  assert.deepEqual(JSON.parse(await home.ok('list tokenrevocations -o json')).items, [])
})

test('a dry run changes nothing, and does not prompt', async () => {
  for (const args of [
    'delete team web',
    'unset secret app A -n asks',
    'rollback secret app@1 -n asks',
    'import secret app -f app.json --replace -n asks',
    'share secret app --user ada --remove -n asks',
    'team remove-user web ada',
    'team remove-group web front',
  ])
    await home.ok(`${args} --dry-run=server`)
})

test('removing somebody who is not a member reports it, without a prompt', async () => {
  assert.equal(await home.ok('team remove-user web eve'), 'team/web unchanged: eve is not a member\n')
})

const give = async () => {
  await home.run('team add-user web ada')
  await home.run('team add-group web front')
  for (const key of ['C', 'D']) await home.run(`unset secret app ${key} -n asks --yes`)
  await home.ok('set secret app A=- -n asks', { stdin: '1' })
  await home.ok('set secret app B=- -n asks', { stdin: '2' })
}

test('--yes skips the prompt', async () => {
  assert.equal(await home.ok('team remove-user web ada --yes'), 'team/web changed\n')
  assert.equal(await home.ok('team remove-group web front -y'), 'team/web changed\n')
  assert.match(await home.ok('token revoke --user ada --yes'), /tokens of the user ada issued until/)
  assert.match(await home.ok('import secret app -f app.json --replace -n asks --yes'), /changed: 1 keys set, 2 removed/)
})

await withTerminal(() => {
  test('at a terminal each of them prompts, and does nothing unless the answer is yes', async () => {
    await give()
    for (const [args, question] of Object.values(acts)) {
      const terminal = home.terminal(args)
      await terminal.sees(new RegExp(`${question.source}.* \\[y/N\\] $`))
      terminal.type('\r')
      const { code, text } = await terminal.ended
      assert.equal(code, 1, text)
      assert.match(text, /nothing was changed\r\n$/)
    }
    assert.equal(await home.ok('whoami -o name'), 'admin\n')
  })

  test('at a terminal n means no and y means yes', async () => {
    for (const [args, question] of [
      ['team remove-user web zoe', /Remove the user zoe from team\/web on .*\[y\/N\] $/],
      ['token revoke --user zoe', /Revoke all tokens of the user zoe .*\[y\/N\] $/],
      ['import secret app -f app.json --replace -n asks', /Set C of .* and remove (A, B, )?D\? \[y\/N\] $/],
    ] as const) {
      await home.run('set secret app D=- -n asks', { stdin: '4' })
      for (const [answer, code] of [
        ['n\r', 1],
        ['Y\r', 0],
      ] as const) {
        const terminal = home.terminal(args)
        await terminal.sees(question)
        terminal.type(answer)
        const ended = await terminal.ended
        assert.equal(ended.code, code, ended.text)
      }
    }
  })

  test('a replace that removes nothing does not prompt', async () => {
    const { code, text } = await home.terminal('import secret app -f app.json --replace -n asks').ended
    assert.equal(code, 0, text)
  })
})

test('deleting the key in use warns, also if it is the last one', async () => {
  const ada = await openHome()
  await ada.signIn(server, (await home.ok('create accesskey only --for-user ada')).trim())
  const own = 'this is the key you are signed in with'
  assert.match(
    await ada.fails(2, 'delete accesskey only'),
    new RegExp(`only on \\S+; ${own} and the last key of ada\\?`),
  )
  const ended = (await home.ok('create accesskey ended --for-user ada')).trim()
  await home.ok('disable accesskey ended')
  assert.match(await ada.fails(2, 'delete accesskey only ended'), new RegExp(`${own} and the last key of ada\\?`))
  await home.ok('enable accesskey ended')
  assert.match(await ada.fails(2, 'delete accesskey only'), new RegExp(`${own}\\?`))
  const pipeline = { env: { PLATFORM_ACCESS_KEY: ended, PLATFORM_CONTEXT: undefined, PLATFORM_SERVER: server.http } }
  assert.match(await ada.fails(2, 'delete accesskey ended', pipeline), new RegExp(`${own}\\?`))
  assert.equal(new RegExp(own).test(await home.fails(2, 'delete accesskey only')), false)
  const { stdout, stderr } = await ada.run('delete accesskey only --yes')
  assert.equal(stdout, 'ownedaccesskey/only deleted\n')
  assert.match(stderr, new RegExp(`warning: ${own}`))
  assert.match(await ada.fails(4, 'whoami'), /deleted/)
  await ada.close()
})

test('of several keys, the key in use is deleted last, because the others need it', async () => {
  const bob = await openHome()
  await bob.signIn(server, (await home.ok('create accesskey mine --for-user bob')).trim())
  await home.ok('create accesskey other --for-user bob')
  const { code, stdout, stderr } = await bob.run('delete accesskey mine other --yes')
  assert.deepEqual([code, stdout], [0, 'ownedaccesskey/other deleted\nownedaccesskey/mine deleted\n'], stderr)
  assert.match(stderr, /this is the key you are signed in with and the last key of bob/)
  assert.match(await bob.fails(4, 'whoami'), /deleted/)
  await bob.close()
})

test('a key cannot disable itself, and the error says why', async () => {
  assert.match(await home.fails(5, 'disable accesskey admin'), /own/)
})
