// A secret that goes through every command is afterwards nowhere: on no disk, in no log, in no argument of any process, in no message, in no history of a shell.
// Every other test of test/cli ends with the same look, for the values and keys that it used (cli-home.ts).

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openCanaries } from '../support/canary.ts'
import { type CliHome, openHome, openTerminal, withTerminal } from '../support/cli-home.ts'
import { type Server, startServer } from '../support/server.ts'

const canary = 'canary-7f3e1c9a55d24b'
const program = join(import.meta.dirname, '../../bin/platform.js')
let server: Server
let home: CliHome
before(async () => {
  server = await startServer({ args: ['--log-level', 'debug'] })
  home = await openHome()
  await home.signIn(server)
})
after(async () => {
  await home.close()
  await server.stop()
})

test('a canary through every command is on no disk, in no log and in no argument', async () => {
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

test('a key is in its own file alone, at the server in those of the administrator', () => {
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
  test('what is typed at a prompt is in no history of the shell that was typed into, nor an argument meanwhile', async () => {
    const typed = 'canary-typed-at-a-prompt'
    const histories = join(home.directory, 'bash_history')
    const env = { ...home.env, HISTFILE: histories, PS1: 'ready> ', BASH_SILENCE_DEPRECATION_WARNING: '1' }
    const shell = openTerminal(['bash', '--norc', '--noprofile', '-i'], env, home.directory)
    await shell.sees(/ready> /)
    shell.type(`'${process.execPath}' '${program}' set secret typed password; echo "code $?"\r`)
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

/** These start the program as others do: a shell, kubectl, a package elsewhere, a hook that tells what is loaded. */
const pastTheHome = ['client-library', 'kubeconfig', 'package', 'shells', 'start']

test('every test of test/cli ends with that look, and what starts the program goes by its home', () => {
  const own = readdirSync(import.meta.dirname).filter(name => name.endsWith('.test.ts'))
  const texts = own.map(name => [name.replace('.test.ts', ''), readFileSync(join(import.meta.dirname, name), 'utf8')])
  const without = texts.filter(([, text = '']) => !/\bopen(Home|Canaries)\(/.test(text))
  assert.deepEqual(
    without.map(([name]) => name),
    [],
  )
  const past = texts.filter(([, text = '']) => /^import (?!type\b).*(child_process|support\/exec\.ts)'$/m.test(text))
  assert.deepEqual(
    past.map(([name]) => name),
    pastTheHome,
  )
})

test('the look at the end of a test finds what was left, in whatever form, said or handed on', async () => {
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
  const found = '{"left":[".left"],"atServers":[[]],"asArguments":[]}'
  assert.equal(await lost(async () => {}), '')
  assert.equal(await lost(write(`a ${value}\n`)), found)
  assert.equal(await lost(write(Buffer.from(value).toString('hex'))), found)
  for (const lead of ['', 'x', 'xy', 'xyz'])
    assert.equal(await lost(write(Buffer.from(`${lead}${value} and more`).toString('base64'))), found, lead)
  const asArgument = await lost(other => other.exec(['run', '-s', 'lost', '--', 'true', value]))
  assert.equal(asArgument, '{"left":[],"atServers":[[]],"asArguments":["argv"]}')
  await assert.rejects(
    lost(other => other.exec(['run', '-s', 'lost', '--', 'sh', '-c', 'echo $a >&2'])),
    /a secret was said/,
  )
})
