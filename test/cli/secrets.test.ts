// Secrets through the command line: every way in, every way out, bytes that stay as they are, and `run`.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'
import { withTerminal } from '../support/terminal.ts'

const { server, home } = await signedIn()

test('values come from arguments with a warning, from files and standard input without', async () => {
  const bare = await home.run(['set', 'secret', 'db', 'user=shop', 'note=a=b'])
  assert.equal(bare.stdout, 'sharedsecret/db created\n')
  assert.match(bare.stderr, /shell history/)
  writeFileSync(join(home.directory, 'bytes'), Buffer.from([0, 255, 10]))
  assert.equal((await home.run('set secret db blob=@bytes')).stderr, '')
  const piped = await home.run('set secret db password=-', { stdin: 'hunter2\n' })
  assert.equal(piped.stdout, 'sharedsecret/db changed\n')
  assert.match(piped.stderr, /ends with a line break/)
  assert.equal(piped.stderr.includes('hunter2'), false)
  assert.equal(
    await home.ok('get secret db'),
    'KEY        BYTES\nblob       3\nnote       3\npassword   8\nuser       4\n',
  )
})

test('values are printed unchanged: raw bytes, text, JSON and YAML', async () => {
  assert.equal(await home.ok('get secret db.note -o value'), 'a=b')
  const { stdout } = await home.exec('get secret db.blob -o json')
  assert.deepEqual(JSON.parse(stdout), { blob: { base64: 'AP8K' } })
  assert.match(await home.ok('get secret db --all -o yaml'), /^blob:\n {2}base64: AP8K\nnote: a=b\n/)
  assert.match(await home.ok('get secret db --all'), /blob +<3 bytes, not text>\nnote +a=b\npassword +hunter2\ufffd\n/)
  assert.equal(await home.ok('get secret db -o name'), 'sharedsecret/db\n')
  assert.equal(JSON.parse(await home.ok('get secret db -o json')).spec.data.blob, 'AP8K')
  assert.match(await home.fails(2, 'get secret db -o value'), /one value/)
  assert.match(await home.fails(3, 'get secret db.pasword'), /has no key "pasword"; did you mean password\?/)
  assert.match(await home.fails(3, 'get secret nothing'), /"nothing" not found/)
})

test('-o value works with the name of the kind too', async () => {
  assert.equal(await home.ok('get sharedsecret db.note -o value'), 'a=b')
  assert.equal(await home.ok('get secrets db.note -o value'), 'a=b')
  await home.ok('set secret own k=- --project shop', { stdin: 'v' })
  assert.equal(await home.ok('get projectsecret own.k -n p-shop -o value'), 'v')
  assert.equal(await home.ok('get projectsecret own.k --project shop -o value'), 'v')
  await home.ok('delete secret own --project shop --yes')
  assert.match(await home.fails(2, 'get projectsecret own.k -o value'), /--project PROJECT is missing/)
  assert.match(await home.fails(2, 'get sharedsecrets -o value'), /one value of a secret/)
})

test('every byte is preserved: through a file, standard input, a pipe and every format', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at))
  writeFileSync(join(home.directory, 'all'), bytes)
  await home.ok('set secret bytes all=@all')
  const got = await home.exec('get secret bytes.all -o value', { within: '"$@" > got' })
  assert.equal(got.code, 0, got.stderr)
  assert.deepEqual(readFileSync(join(home.directory, 'got')), bytes)
  const again = await home.exec('set secret bytes again=-', { within: '"$@" < all' })
  assert.equal(again.code, 0, again.stderr)
  const { data } = JSON.parse(await home.ok('get secret bytes -o json')).spec
  assert.deepEqual(data, { all: bytes.toString('base64'), again: bytes.toString('base64') })
  for (const form of ['json', 'yaml']) {
    await home.ok(`import secret bytes-${form} -f - --format ${form}`, {
      stdin: await home.ok(`export secret bytes --format ${form}`),
    })
    assert.deepEqual(JSON.parse(await home.ok(`get secret bytes-${form} -o json`)).spec.data, data)
  }
  for (const form of ['dotenv', 'shell'])
    assert.match(await home.fails(2, `export secret bytes --format ${form}`), /all is not text \(256 bytes\)/)
  assert.match(await home.ok('get secret bytes --all'), /all +<256 bytes, not text>/)
  for (const name of ['bytes', 'bytes-json', 'bytes-yaml']) await home.ok(`delete secret ${name} --yes`)
})

test('a value with line breaks and quotes survives every format', async () => {
  const value = 'it\'s "quoted"\n$HOME `id` \\ end\n'
  await home.ok('set secret odd value=-', { stdin: value })
  for (const form of ['dotenv', 'json', 'yaml', 'shell']) {
    await home.ok(`import secret odd-${form} -f - --format ${form}`, {
      stdin: await home.ok(`export secret odd --format ${form}`),
    })
    assert.equal(await home.ok(`get secret odd-${form}.value -o value`), value)
    await home.ok(`delete secret odd-${form} --yes`)
  }
  await home.ok('delete secret odd --yes')
  assert.match(
    await home.fails(2, 'import secret x -f - --format json', { stdin: '{"a":{"base64":"not base64!"}}' }),
    /a must be text, or \{base64: …\} in standard base64 with padding/,
  )
})

test('--dry-run=server sends the request and changes nothing', async () => {
  assert.equal(
    await home.ok('set secret dry a=- --dry-run=server', { stdin: 'x' }),
    'sharedsecret/dry created (dry run)\n',
  )
  assert.match(await home.fails(3, 'get secret dry'), /not found/)
  assert.equal(
    await home.ok('set secret db user=- --dry-run=server', { stdin: 'x' }),
    'sharedsecret/db changed (dry run)\n',
  )
  assert.equal(await home.ok('unset secret db user --dry-run=server'), 'sharedsecret/db changed (dry run)\n')
  assert.equal(await home.ok('get secret db.user'), 'shop')
  const full = { stdin: JSON.stringify({ more: 'x'.repeat(512 * 1024) }) }
  assert.match(await home.fails(1, 'import secret db -f - --format json --dry-run=server', full), /more than 524288/)
})

test('the namespace comes from the context, and defaults to default', async () => {
  await home.ok('set secret where a=- -n build', { stdin: 'in build' })
  await home.ok('context use 127.0.0.1 -n build')
  assert.equal(await home.ok('get secret where.a'), 'in build')
  assert.equal(await home.ok('list secrets -o name'), 'sharedsecret/where\n')
  await home.ok('context use 127.0.0.1 -n default')
  assert.match(await home.fails(3, 'get secret where'), /not found/)
  await home.ok('delete secret where -n build --yes')
})

test('in a.b.c the longest existing name wins, and --key is explicit', async () => {
  await home.ok('set secret a b.c=-', { stdin: 'key b.c of a' })
  assert.equal(await home.ok('get secret a.b.c'), 'key b.c of a')
  await home.ok('set secret a.b c=-', { stdin: 'key c of a.b' })
  assert.equal(await home.ok('get secret a.b.c'), 'key c of a.b')
  assert.equal(await home.ok('get secret a --key b.c'), 'key b.c of a')
  await home.ok('set secret a.b.c x=-', { stdin: 'secret a.b.c' })
  assert.match(await home.ok('get secret a.b.c'), /^KEY/)
  assert.equal(await home.ok('get secret a.b --key c'), 'key c of a.b')
})

test('input that the server would reject is rejected before it is sent, without the value', async () => {
  assert.match(await home.fails(2, ['set', 'secret', 'x', 'sp ace=hunter2']), /the key "sp ace" must be/)
  assert.match(await home.fails(2, ['set', 'secret', 'x', 'a=1', 'a=2']), /"a" is given twice/)
  assert.match(await home.fails(2, 'set secret x a'), /cannot prompt for a value without a terminal/)
  assert.match(await home.fails(2, 'set secret x a=- b=-'), /only one key can read standard input/)
  assert.match(
    await home.fails(2, 'set secret x a=-', { stdin: 'x'.repeat(512 * 1024 + 1) }),
    /too large: 524289 bytes/,
  )
  await home.ok('set secret x a=-', { stdin: 'x'.repeat(512 * 1024) })
  assert.match(await home.fails(1, 'set secret x b=-', { stdin: 'y' }), /more than 524288/)
})

test('unset removes keys, prompts first, and reports missing keys', async () => {
  assert.match(await home.fails(3, 'unset secret db nothing --yes'), /has no key "nothing"/)
  assert.match(await home.fails(2, 'unset secret db note'), /--yes/)
  await home.ok('unset secret db note --yes')
  assert.match(await home.fails(3, 'get secret db.note'), /has no key/)
  assert.equal(
    await home.ok('list secrets -o name'),
    'sharedsecret/a\nsharedsecret/a.b\nsharedsecret/a.b.c\nsharedsecret/db\nsharedsecret/x\n',
  )
  assert.equal(await home.ok('list secrets --unused 1h -o name'), '')
})

test('import and export, with --replace; secrets of a project are in its namespace', async () => {
  writeFileSync(join(home.directory, 'app.env'), 'A=1\nB="two\\nlines"\n')
  assert.equal(await home.ok('import secret app -f app.env --project shop'), 'projectsecret/app created: 2 keys set\n')
  assert.equal(await home.ok('export secret app --project shop'), 'A=1\nB="two\\nlines"\n')
  assert.equal(
    await home.ok('export secret app --project shop --format shell'),
    "export A='1'\nexport B='two\nlines'\n",
  )
  assert.equal(
    await home.ok('import secret app -f - --format json --replace --yes --project shop', { stdin: '{"C":"3"}' }),
    'projectsecret/app changed: 1 keys set, 2 removed\n',
  )
  assert.equal(await home.ok('export secret app --project shop --format json'), '{\n  "C": "3"\n}\n')
  assert.equal(await home.ok('get secret app -n p-shop --project shop -o name'), 'projectsecret/app\n')
  assert.match(await home.fails(3, 'get secret app'), /not found/)
  assert.equal(
    await home.ok('import secret app -f app.env --dry-run=server --project shop'),
    'A (1 bytes) would be set\nB (9 bytes) would be set\n',
  )
  assert.equal(await home.ok('list secrets --project shop -o name'), 'projectsecret/app\n')
})

suite('run', () => {
  const node = process.execPath
  const print = (expression: string) => [node, '-e', `process.stdout.write(JSON.stringify(${expression}))`]

  test('each key has its own or its mapped name; only the child has them, and it does not get our key', async () => {
    const env = { PLATFORM_ACCESS_KEY: server.adminKey }
    const args = ['run', '--secret', 'db.user', '--secret', 'db.password=PGPASSWORD', '--']
    const { stdout } = await home.exec(
      [...args, ...print('[process.env.user, process.env.PGPASSWORD, process.env.PLATFORM_ACCESS_KEY]')],
      { env },
    )
    assert.equal(stdout, '["shop","hunter2\\n",null]')
    await home.ok('set secret web PORT=-', { stdin: '80' })
    const whole = await home.run(['run', '-s', 'web', '--', ...print('process.env.PORT')])
    assert.equal(whole.stdout, '"80"')
  })

  test('exit codes and signals are forwarded', async () => {
    assert.equal((await home.exec(['run', '-s', 'web', '--', node, '-e', 'process.exit(42)'])).code, 42)
    assert.equal(
      (await home.exec(['run', '-s', 'web', '--', node, '-e', 'process.kill(process.pid, "SIGKILL")'])).code,
      137,
    )
    const code =
      'process.on("SIGTERM", () => { console.log("asked"); setTimeout(() => process.exit(7), 50) }); console.log("up"); setInterval(() => {}, 1e6)'
    const child = home.start(['run', '-s', 'web', '--', node, '-e', code])
    let text = ''
    child.stdout?.on('data', chunk => {
      text += chunk
      if (text === 'up\n') child.kill('SIGTERM')
    })
    const [ended] = await once(child, 'exit')
    assert.deepEqual([ended, text], [7, 'up\nasked\n'])
  })

  test('a NUL, two values for one name, and an unknown program are rejected with a hint', async () => {
    assert.match(await home.fails(2, 'run -s db -- true'), /blob contains a NUL byte.*--file/)
    await home.ok('set secret other user=-', { stdin: 'else' })
    assert.match(
      await home.fails(2, 'run -s db.user -s other -- true'),
      /user is set by both db.user and other.user: map one/,
    )
    assert.match(await home.fails(2, 'run -s web=PORT -- true'), /a variable holds one key/)
    assert.match(await home.fails(127, 'run -s web -- no-such-program'), /program not found/)
    assert.match(await home.fails(2, 'run -s web'), /COMMAND is missing/)
    assert.match(await home.fails(2, ['run', '-s', 'web', '--', '']), /the program is missing/)
    assert.match(await home.fails(3, 'run -s nothing -- true'), /not found/)
  })
})

await withTerminal(() => {
  test('at a terminal the command prompts for a value without echo', async () => {
    const terminal = home.terminal('set secret asked password')
    await terminal.sees(/Value of password: $/)
    terminal.type('hunter2é\r')
    const { code, text } = await terminal.ended
    assert.equal(code, 0, text)
    assert.equal(text.includes('hunter2'), false)
    assert.equal(await home.ok('get secret asked.password'), 'hunter2é')
    const shown = await home.terminal('get secret asked.password').ended
    assert.equal(shown.text, 'hunter2é\r\n')
    const nothing = home.terminal('set secret asked password')
    await nothing.sees(/Value of password: $/)
    nothing.type('\r')
    const refused = await nothing.ended
    assert.equal(refused.code, 2, refused.text)
    assert.match(refused.text, /the value of password is empty/)
    assert.equal(await home.ok('get secret asked.password'), 'hunter2é')
    const binary = await home.terminal('get secret db.blob').ended
    assert.equal(binary.code, 2)
    assert.match(binary.text, /not printable text/)
  })
})
