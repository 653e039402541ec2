// Invalid files and values, and failures among many objects. Errors contain the location, and nothing is half done.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openHome, signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn()

const team = (name: string) =>
  `apiVersion: management.platform.sh/v1\nkind: Team\nmetadata: {name: ${name}}\nspec: {users: [ada]}\n`

test('export has -o for its format, like other printing commands', async () => {
  await home.ok('set secret formed a=-', { stdin: 'canary-formed' })
  assert.equal(await home.ok('export secret formed -o json'), await home.ok('export secret formed --format json'))
})

test('create rejects a key for a missing team, but not for a team that the caller may not read', async () => {
  assert.match(
    await home.fails(3, 'create accesskey x --for-team nope'),
    /team "nope" not found: create it with platform create team nope/,
  )
  await home.fails(3, 'get accesskey x')
  await home.ok('create team there')
  assert.match(await home.ok('create accesskey of-team --for-team there'), /^plat_/)
  const eve = await openHome()
  await eve.signIn(server, (await home.ok('create accesskey eve --for-user eve')).trim())
  assert.match(await eve.fails(5, 'create accesskey x --for-team nope'), /forbidden/)
  await eve.close()
})

test('--mask lists the keys of values that are too short to mask', async () => {
  await home.ok('set secret pins pin=-', { stdin: '123' })
  await home.ok('set secret pins pad=-', { stdin: '45\n' })
  await home.ok('set secret pins long=-', { stdin: 'canary-that-is-long' })
  await home.ok('set secret pins none=@/dev/null --allow-empty')
  const { stdout, stderr } = await home.exec(['run', '-s', 'pins', '--mask', '--', 'sh', '-c', 'echo $pin $long'])
  assert.equal(stdout, '123 ***\n')
  assert.equal(stderr, 'platform: warning: --mask does not mask values shorter than 4 bytes: pad, pin\n')
})

test('of many objects each failure is reported with its location; the others are created, and the first failure sets the exit code', async () => {
  writeFileSync(join(home.directory, 'three.yaml'), [team('one'), team('Bad'), team('two')].join('---\n'))
  const first = await home.run('create -f three.yaml')
  assert.deepEqual([first.code, first.stdout], [1, 'team/one created\nteam/two created\n'])
  assert.match(first.stderr, /^platform: three\.yaml: team\/Bad \(2 of 3\): .*\n$/)
  const again = await home.run('create -f three.yaml')
  assert.equal(again.code, 6)
  assert.deepEqual(
    again.stderr.split('\n').map(line => line.slice(0, 36)),
    [
      'platform: three.yaml: team/one (1 of',
      'platform: three.yaml: team/Bad (2 of',
      'platform: three.yaml: team/two (3 of',
      '',
    ],
  )
  assert.match(await home.fails(6, 'create -f -', { stdin: team('one') }), /^platform: teams\.\S+ "one" already exists/)
  const unknown = 'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n'
  const parts = [team('three'), 'kind: Teem\n', 'a: [\n', unknown, team('Bad'), team('four')]
  writeFileSync(join(home.directory, 'odd.yaml'), parts.join('---\n'))
  const odd = await home.run('create -f odd.yaml')
  assert.deepEqual([odd.code, odd.stdout], [2, 'team/three created\nteam/four created\n'])
  const lines = odd.stderr.split('\n')
  assert.deepEqual(lines.toSpliced(1, 1).slice(0, 2), [
    'platform: odd.yaml: document 2 of 6: apiVersion is missing, and kind "Teem" is unknown; did you mean Team?',
    'platform: odd.yaml: document 4 of 6: kind "Pod" of apiVersion "v1" is unknown',
  ])
  assert.match(lines[1] ?? '', /^platform: odd\.yaml: document 3 of 6: /)
  assert.match(lines[3] ?? '', /^platform: odd\.yaml: team\/Bad \(5 of 6\): /)
  assert.equal(lines.length, 5)
  for (const [stdin, wanted] of [
    ['kind: Team', '-: apiVersion is missing: Team has apiVersion management.platform.sh/v1'],
    ['apiVersion: v1\nkind: Team', '-: apiVersion "v1": Team has apiVersion management.platform.sh/v1'],
    ['apiVersion: management.platform.sh/v1', '-: kind is missing'],
    ['a: b', '-: apiVersion and kind are missing'],
    ['- a', '-: expected an object with apiVersion and kind'],
    ['apiVersion: v1\nkind: Namespace\nmetadata: {name: x}', '-: namespaces cannot be created'],
    [
      `{kind: List, items: [{kind: Team}, 7]}`,
      '-: item 1 of 2: apiVersion is missing: Team has apiVersion management.platform.sh/v1\nplatform: -: item 2 of 2: expected an object with apiVersion and kind',
    ],
  ] as const)
    assert.equal(await home.fails(2, 'create -f -', { stdin }), `platform: ${wanted}\n`, stdin)
})

test('an unreadable file is one failure of many: objects of other files are created, and reports are in order', async () => {
  const write = (name: string, text: string) => writeFileSync(join(home.directory, name), text)
  write('seven.yaml', team('seven'))
  write('eight.yaml', `${team('eight')}---\nkind: Teem\n`)
  write('bad.yaml', team('Bad'))
  mkdirSync(join(home.directory, 'teams'))
  const files = (...names: string[]) => ['create', ...names.flatMap(name => ['-f', name])]
  const here = (text: string) => text.replaceAll(`${home.directory}/`, '')
  const first = await home.run(files('nope', 'seven.yaml', 'bad.yaml', 'teams', 'eight.yaml', 'nope/too'))
  assert.deepEqual([first.code, first.stdout], [2, 'team/seven created\nteam/eight created\n'])
  const lines = here(first.stderr).split('\n')
  assert.deepEqual(lines.slice(0, 4), [
    'platform: cannot read nope: there is no such file',
    'platform: cannot read teams: it is a directory',
    'platform: eight.yaml: document 2 of 2: apiVersion is missing, and kind "Teem" is unknown; did you mean Team?',
    'platform: cannot read nope/too: there is no such file',
  ])
  assert.match(lines[4] ?? '', /^platform: bad\.yaml: team\/Bad: /, 'of several files it is said which')
  assert.equal(lines.length, 6)
  assert.equal(
    here(await home.fails(2, files('nope', 'teams'))),
    'platform: cannot read nope: there is no such file\nplatform: cannot read teams: it is a directory\n',
  )
  const long = 'x'.repeat(300)
  const other = await home.run([...files(long, 'nope', 'seven.yaml'), '--dry-run=server'])
  assert.equal(other.code, 1, 'the first failure decides, and this one is not of who asks')
  assert.match(
    other.stderr,
    /^platform: cannot read \S*x: .*\nplatform: cannot read \S*nope: .*\nplatform: seven\.yaml: /,
  )
  const nowhere = [...files('nope', 'seven.yaml'), '-o', 'value']
  assert.equal(
    here(await home.fails(2, nowhere)),
    'platform: cannot read nope: there is no such file\nplatform: -o value prints keys and tokens: team/seven has neither\n',
  )
  await home.ok('delete team seven eight --yes')
})

test('if one operation needs several files, every unreadable one is reported, and nothing is done', async () => {
  const missing = (...names: string[]) =>
    names.map(name => `platform: cannot read ${join(home.directory, name)}: there is no such file\n`).join('')
  assert.equal(
    await home.fails(2, 'set secret half a=@nope b=@/dev/null c=@none --allow-empty'),
    missing('nope', 'none'),
  )
  assert.match(await home.fails(3, 'get secret half'), /not found/)
  assert.equal(
    await home.fails(
      2,
      'vcluster patch -f nope --license no-license --name vc --namespace team --object none --host-object no-host',
    ),
    missing('no-license', 'nope', 'none', 'no-host'),
  )
})

test('a delete of many objects continues after missing ones, reports each, and exits with 3', async () => {
  const { code, stdout, stderr } = await home.run('delete team nobody one none two --yes')
  assert.deepEqual([code, stdout], [3, 'team/one deleted\nteam/two deleted\n'])
  assert.match(stderr, /"nobody" not found\n.*"none" not found\n$/)
})

test('the only value of a flag is listed once, without a suggestion', async () => {
  const said = await home.fails(2, 'create accesskey x --dry-run=sever')
  assert.match(said, /^platform: --dry-run: "sever" must be server\n/)
})

test('an unreadable file is reported with the reason and exit code 2', async () => {
  const data = join(home.directory, 'data')
  mkdirSync(data)
  writeFileSync(join(data, 'master.key'), '')
  const here = [
    'create -f nope',
    'import secret x -f nope',
    'set secret x a=@nope',
    'login https://127.0.0.1:1 --context new --ca-file nope',
    'token revoke --user ada --kubeconfig nope',
    'license inspect nope',
    'vcluster validate -f nope',
  ]
  // These read files by themselves, from where they are started.
  const alone = [
    'config check --config nope',
    'config check --gateway-config nope',
    'config check --audit-policy nope',
    'gateway --config nope',
    'gateway --config nope --check',
    `restore nope --data ${data}`,
    `restore odd.yaml --data ${data}-new --master-key nope`,
    `serve --data ${data}-new --master-key nope`,
    `serve --data ${data}-new --audit-policy nope`,
  ]
  for (const args of [...here, ...alone]) {
    const { code, stderr } = await (here.includes(args) ? home.run(args) : home.exec(args, { stdin: '' }))
    assert.equal(code, 2, `${args}: ${stderr}`)
    assert.match(stderr, /cannot read (\S+\/)?nope: there is no such file\n/, args)
    assert.equal(/ENOENT/.test(stderr), false, args)
  }
  assert.match(await home.fails(2, ['create', '-f', home.directory]), /it is a directory/)
  assert.match(
    await home.fails(2, `backup ${join(home.directory, 'no/where')} --data ${server.directory}`),
    /cannot write .*no\/where: the directory does not exist/,
  )
  assert.deepEqual(readdirSync(data), ['master.key'])
  const around = readdirSync(join(home.directory, '..'))
  assert.match(
    await home.fails(2, `backup ${home.directory} --replace --data ${server.directory}`),
    /: cannot write \S+: it is a directory; name a file\n$/,
  )
  assert.match(
    await home.fails(1, `backup ${join(home.directory, 'odd.yaml/x')} --data ${server.directory}`),
    /: cannot write \S+odd\.yaml\/x: a component of its path is not a directory\n$/,
  )
  assert.equal(
    readdirSync(join(home.directory, '..')).some(name => name.endsWith('.tmp') && !around.includes(name)),
    false,
  )
})

test('-o value for an object without value is rejected before anything is created', async () => {
  writeFileSync(join(home.directory, 'no-value.yaml'), team('no-value'))
  assert.match(await home.fails(2, 'create -f no-value.yaml -o value'), /-o value prints keys and tokens/)
  assert.match(await home.fails(2, 'create team no-value -o value'), /--output: "value" must be/)
  await home.fails(3, 'get team no-value')
})

test('a duplicate key in a file is reported with line and column, for every format', async () => {
  const write = (name: string, text: string) => writeFileSync(join(home.directory, name), text)
  write('twice.yaml', 'sync:\n  toHost: {a: 1}\n  toHost: {a: 1, a: 2}\n')
  const told = (place: string, key: string) => `${place}: key "${key}" already set in map\n`
  const inPlace = [told('twice.yaml:3:3', 'toHost'), told('twice.yaml:3:18', 'a')]
  // These read files by themselves, from where they are started.
  for (const args of ['vcluster validate -f twice.yaml', 'gateway --config twice.yaml --check']) {
    const { code, stderr } = await home.exec(args)
    assert.equal(code, 2, args)
    for (const line of inPlace) assert.ok(stderr.includes(line), `${args}: ${stderr}`)
  }
  const inWords = [told('line 3, column 3', 'toHost'), told('line 3, column 18', 'a')]
  for (const args of [
    'config check --config twice.yaml',
    'serve --data none --audit-policy twice.yaml',
    'create -f twice.yaml',
    'import secret twice -f twice.yaml',
    `vcluster patch -f ${join(import.meta.dirname, '../../examples/vcluster.yaml')} --license ${join(import.meta.dirname, '../../examples/development.license')} --name vc --namespace team --object twice.yaml`,
  ]) {
    const { code, stderr } = await home.exec(args)
    assert.equal(code, 2, `${args}: ${stderr}`)
    for (const line of inWords) assert.ok(stderr.includes(line), `${args}: ${stderr}`)
  }
})

test('--file of run reports an invalid pair with the right form, and a duplicate key', async () => {
  const run = (...files: string[]) => ['run', '-s', 'formed', ...files.flatMap(one => ['--file', one]), '--', 'true']
  assert.equal(
    await home.fails(2, run('a', 'a=one', '=two', 'a=three', 'b=', `k${'x'.repeat(80)}`)),
    [
      'platform: --file: "a" must be NAME[.KEY]=PATH, such as tls.key=tls.key\n',
      'platform: --file: "=two" must be NAME[.KEY]=PATH, such as tls.key=tls.key\n',
      'platform: --file: "b=" must be NAME[.KEY]=PATH, such as tls.key=tls.key\n',
      'platform: --file: a word of 81 characters must be NAME[.KEY]=PATH, such as tls.key=tls.key\n',
      'platform: --file: "a" is given twice\n',
    ].join(''),
  )
})

test('an unreadable file of the program itself is reported with the reason', async () => {
  const other = await openHome()
  const file = join(other.directory, '.config/platform/contexts.json')
  mkdirSync(file, { recursive: true })
  assert.equal(await other.fails(1, 'whoami'), `platform: cannot read ${file}: it is a directory\n`)
  await other.close()
})

test('a value that is not a string is rejected with its key, because its notation is lost', async () => {
  const yaml = 'mode: 0o17\nversion: 1.10\nagent: 007\non: yes\nright: "1.10"\ntrue: canary\nso: true\nnone:\n'
  writeFileSync(join(home.directory, 'numbers.yaml'), yaml)
  const said = await home.fails(2, 'import secret numbers -f numbers.yaml')
  for (const key of ['mode', 'version', 'agent', 'so'])
    assert.match(said, new RegExp(`numbers\\.yaml: ${key} is a (number|boolean), .*: quote it`))
  assert.doesNotMatch(said, /right/)
  writeFileSync(join(home.directory, 'numbers.json'), '{"port": 5432, "on": false, "name": "x"}')
  assert.match(
    await home.fails(2, 'import secret numbers -f numbers.json'),
    /numbers\.json: port is a number, .*\n.*numbers\.json: on is a boolean/,
  )
  await home.fails(3, 'get secret numbers')
})

test('an empty value is rejected; KEY= and --allow-empty allow it', async () => {
  writeFileSync(join(home.directory, 'nothing'), '')
  for (const value of ['-', '@nothing'])
    assert.match(
      await home.fails(2, `set secret hollow key=${value}`, { stdin: '' }),
      /the value of key is empty: if intended, use KEY= or --allow-empty/,
    )
  await home.fails(3, 'get secret hollow')
  const meant = await home.run('set secret hollow key=', { stdin: '' })
  assert.deepEqual([meant.code, meant.stderr], [0, ''], 'an empty value is not stored in the history')
  await home.ok('set secret hollow key=- other=@nothing --allow-empty', { stdin: '' })
  assert.match(await home.ok('get secret hollow'), /^key +0\nother +0$/m)
})
