// A secret that goes through every command is afterwards nowhere: on no disk, in no log, in no argument of any process, in no message, in no history of a shell.
// Every other test of test/cli ends with the same look, for the values and keys that it used (cli-home.ts).

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openCanaries } from '../support/canary.ts'
import { type CliHome, openHome, signedIn } from '../support/cli-home.ts'
import { withTerminal } from '../support/terminal.ts'

const canary = 'canary-7f3e1c9a55d24b'
const { server, home } = await signedIn({ args: ['--log-level', 'debug'] })

test('a canary used in every command is on no disk, in no log and in no argument', async () => {
  const canaries = openCanaries()
  canaries.note(canary)
  const said: string[] = []
  const history = { HISTFILE: join(home.directory, 'history') }
  const run = async (args: string | readonly string[], stdin = '', wanted = 0) => {
    const options = { stdin, env: { PLATFORM_PASSPHRASE: 'correct horse', ...history } }
    // As a process of its own where it starts another one, or first reads the value.
    const isOwn = args[0] === 'run' || /^(run|set)/.test(String(args))
    const { code, stderr } = await (isOwn ? home.exec(args, options) : home.run(args, options))
    assert.equal(code, wanted, `${args}: ${stderr}`)
    said.push(stderr)
  }
  await run('set secret canary token=-', canary)
  await run('import secret other -f - --format json', JSON.stringify({ token: canary }))
  await run('import secret broken -f - --format json', `{"token": "${canary}"`, 2)
  await run('import secret broken -f -', `${canary}\n`, 2)
  await run('set secret canary bad/key=-', canary, 2)
  await run('create -f -', `kind: Nothing\nmetadata: {name: ${canary}}\n`, 2)
  await run('get secret canary.token')
  await run('get secret canary --all -o json')
  await run('export secret canary --format shell')
  await run('run -s canary -s other -- true')
  await run(['run', '-s', 'canary', '--file', `token=${join(home.directory, 'token')}`, '--', 'true'])
  await run('run -s canary --mask -- sh -c env')
  await run('unset secret canary token --yes')
  await run('history secret canary')
  await run('diff secret canary@1 canary@2', '', 1)
  await run('rollback secret canary@1 --yes')
  await run('list secrets -A -o wide')
  const look =
    'const fs = require("node:fs"); const all = fs.readdirSync("/proc").filter(one => /^\\d+$/.test(one)).flatMap(pid => { try { return [fs.readFileSync("/proc/" + pid + "/cmdline", "utf8")] } catch { return [] } }); console.log(all.length > 1, process.env.token.length > 9, all.some(one => one.includes(process.env.token)))'
  const seen = await home.exec(['run', '-s', 'canary', '--', process.execPath, '-e', look])
  assert.equal(seen.stdout, 'true true false\n', `no process has it as an argument: ${seen.stderr}`)
  assert.deepEqual(canaries.below(home.directory), [])
  assert.deepEqual(canaries.below(server.directory), [])
  for (const text of [...said, server.output()]) assert.equal(canaries.in(text), undefined, text)
})

test('a key is only in its own file, and on the server in the files of the administrator', () => {
  const keys = openCanaries()
  keys.note(server.adminKey)
  assert.deepEqual(keys.below(home.directory), ['.local/share/platform/keys/127.0.0.1'])
  assert.deepEqual(keys.below(server.directory), ['admin.key', 'admin.kubeconfig'])
  assert.equal(keys.in(server.output()), undefined)
})

/** Every process that there is now, by its arguments. */
const allArguments = () =>
  readdirSync('/proc')
    .filter(one => /^\d+$/.test(one))
    .flatMap(pid => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')]
      } catch {
        return []
      }
    })

await withTerminal(() => {
  test('input at a prompt is not in the shell history, and never an argument', async () => {
    const typed = 'canary-typed-at-a-prompt'
    const histories = join(home.directory, 'bash_history')
    const env = { HISTFILE: histories, PS1: 'ready> ', BASH_SILENCE_DEPRECATION_WARNING: '1' }
    const shell = home.terminalBy(['bash', '--norc', '--noprofile', '-i'], { env })
    await shell.sees(/ready> /)
    shell.type('platform set secret typed password; echo "code $?"\r')
    await shell.sees(/Value of password: /)
    // Looked at again and again, from before it is typed until it is stored.
    const seen: string[] = []
    let isStored = false
    const looking = (async () => {
      for (; !isStored; await new Promise(setImmediate)) seen.push(...allArguments())
    })()
    shell.type(`${typed}\r`)
    await shell.sees(/code 0/)
    isStored = true
    await looking
    assert.ok(seen.some(one => one.includes('secret\0typed\0password')))
    assert.equal(
      seen.some(one => one.includes(typed)),
      false,
    )
    shell.type('history -a; exit\r')
    const { text } = await shell.ended
    assert.equal(text.includes(typed), false)
    const kept = readFileSync(histories, 'utf8')
    assert.match(kept, /set secret typed password/)
    const canaries = openCanaries()
    canaries.note(typed)
    assert.deepEqual([...canaries.below(home.directory), ...canaries.below(server.directory)], [])
    assert.equal(await home.ok('get secret typed.password'), typed)
  })
})

/** Code that starts a program without the test home: names of modules and functions, and the program's own file. */
const bypassesHome = /child_process|support\/exec\.ts|\bopenTerminal\b|import\.meta\.dirname.*bin\/platform/

test('every test of test/cli ends with that check, and starts programs only through its home', () => {
  const own = readdirSync(import.meta.dirname).filter(name => name.endsWith('.ts'))
  assert.ok(own.length > 20)
  const problems = own.flatMap(name => {
    const lines = readFileSync(join(import.meta.dirname, name), 'utf8').split('\n')
    const past = lines.flatMap((line, at) =>
      // Types start nothing, and neither does this rule.
      !/^import type |^const bypassesHome/.test(line) && bypassesHome.test(line)
        ? [`${name}:${at + 1} ${line.trim()}`]
        : [],
    )
    const has = (part: string) => lines.some(line => line.includes(part))
    // signedIn closes everything that it opens.
    const isClosed = has('await signedIn(') || (has('openHome(') && lines.some(line => /\.close\b/.test(line)))
    return [...past, ...(isClosed ? [] : [`${name} opens no home, or does not close it`])]
  })
  assert.deepEqual(
    problems,
    [],
    'a secret could be lost there unseen: home.exec, home.by and home.terminalBy start programs',
  )
})

test('the check at the end of a test finds leaked values, in any encoding, in output and arguments', async () => {
  const value = 'canary-that-was-lost'
  const lost = async (work: (other: CliHome) => Promise<unknown>) => {
    const other = await openHome()
    await other.signIn(server)
    await other.ok('set secret lost a=-', { stdin: value })
    await work(other)
    return other.close().then(
      () => '',
      error => JSON.stringify((error as assert.AssertionError).actual),
    )
  }
  const write = (text: string) => (other: CliHome) => {
    writeFileSync(join(other.directory, '.left'), text)
    return Promise.resolve()
  }
  const found = '{"left":[".left"],"atServers":[[]],"asArguments":[],"inBackground":[]}'
  assert.equal(await lost(async () => {}), '')
  assert.equal(await lost(write(`a ${value}\n`)), found)
  assert.equal(await lost(write(Buffer.from(value).toString('hex'))), found)
  for (const lead of ['', 'x', 'xy', 'xyz'])
    assert.equal(await lost(write(Buffer.from(`${lead}${value} and more`).toString('base64'))), found, lead)
  const asArgument = '{"left":[],"atServers":[[]],"asArguments":["argv"],"inBackground":[]}'
  const all = ['run', '-s', 'lost', '--', 'true', value]
  assert.equal(await lost(other => other.exec(all)), asArgument)
  assert.equal(await lost(other => other.run(all)), asArgument, 'in this process')
  assert.equal(await lost(other => other.by(['true', value])), asArgument, 'by others')
  assert.equal(
    await lost(other => other.by(['sh', '-c', 'platform version "$(cat)" 2> /dev/null'], { stdin: value })),
    asArgument,
  )
  const inBackground = '{"left":[],"atServers":[[]],"asArguments":[],"inBackground":["standard error"]}'
  const start = (other: CliHome) => once(other.start(['run', '-s', 'lost', '--', 'sh', '-c', 'echo $a >&2']), 'close')
  assert.equal(await lost(start), inBackground)
  await assert.rejects(
    lost(other => other.exec(['run', '-s', 'lost', '--', 'sh', '-c', 'echo $a >&2'])),
    /a secret was said/,
  )
})
