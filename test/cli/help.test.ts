// Help, hints and completion, for the whole table: what is shown can be typed.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { shownCommands } from '../../docs/generate.ts'
import { commands } from '../../src/cmd/commands.ts'
import { type Command, loaded } from '../../src/host/command.ts'
import { readFlags } from '../../src/host/read-flags.ts'
import { signedIn } from '../support/cli-home.ts'

const root = join(import.meta.dirname, '../..')
const { server, home } = await signedIn({ storage: 'memory' })

test('every row of the table loads its command', async () => {
  for (const row of commands) assert.deepEqual((await loaded(row)).words, row.words)
})

test('every command has an example, and every example can be typed', async () => {
  for (const command of await shownCommands()) {
    const name = command.words.join(' ')
    if (name !== 'version') assert.ok(command.examples.length, `platform ${name} has no example`)
    for (const { command: line } of command.examples) {
      const [, own = ''] = /\bplatform ((?:[^|<>)]|<\()*)/.exec(line) ?? []
      const words = own.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []
      assert.deepEqual(words.slice(0, command.words.length), command.words, line)
      if (!command.ownFlags) readFlags(command, words.slice(command.words.length), needed(command))
    }
  }
})

/** Environment variables are read only from the environment. */
const needed = ({ flags }: Command) =>
  Object.fromEntries(
    Object.values(flags).flatMap(flag =>
      flag.type !== 'switch' && flag.required && flag.variable ? [[flag.variable, 'x']] : [],
    ),
  )

test('--help and help print the same on standard output; no command is a usage error on standard error', async () => {
  const help = await home.ok('run --help')
  assert.match(help, /^Run a program.*\n\nExamples:\n/)
  assert.equal(await home.ok('help run'), help)
  const { code, stdout, stderr } = await home.run([])
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /platform set secret/)
  assert.equal(stderr.includes('__complete'), false)
})

test('--help groups the commands by subject', async () => {
  const overview = await home.ok('--help')
  const subjects = [...overview.matchAll(/^(\S.*):$/gm)].map(([, subject]) => subject)
  assert.deepEqual(subjects, [
    'Usage',
    'Sign-in and contexts',
    'Global secrets and project secrets',
    'Teams',
    'Users',
    'Access keys and tokens',
    'Connected clusters',
    'Permissions',
    'Objects of any kind',
    'Virtual clusters',
    'Server',
    'This program',
  ])
  const [, keys = ''] = /^Access keys and tokens:\n((?: {2}.*\n)+)/m.exec(overview) ?? []
  assert.match(keys, /^ {2}platform rotate accesskey +Issue a new secret/m)
  for (const command of await shownCommands())
    assert.equal(overview.split(`  platform ${command.words.join(' ')}  `).length, 2, command.words.join(' '))
  assert.match(await home.ok('team --help'), /^Usage:\n {2}platform team add-user/)
})

test('the usage line puts flags before --', async () => {
  assert.match(await home.ok('run --help'), /^ {2}platform run \[flags\] -- COMMAND…$/m)
  assert.match(await home.ok('get --help'), /^ {2}platform get KIND \[NAME\]… \[flags\]$/m)
})

test('a flag with a single value names it without "one of"', async () => {
  const help = await home.ok('delete --help')
  assert.match(help, /^ {2}--dry-run server +Validate on the server without changing anything\.$/m)
  assert.match(await home.ok('vcluster sync --help'), /--allow-exec SIDE .*\(only virtual; may be repeated\)$/m)
})

test('commands on a data directory list only the settings that they use', async () => {
  const flagsOf = async (name: string) =>
    [...(await home.ok(`${name} --help`)).matchAll(/^ {2}--([a-z-]+)/gm)].map(([, flag]) => flag)
  const ofEtcd = ['storage', 'etcd-endpoints', 'etcd-ca', 'etcd-cert', 'etcd-key', 'etcd-prefix']
  const stored = ['config', 'data', 'master-key', ...ofEtcd, 'etcd-allow-unsafe-version']
  assert.deepEqual((await flagsOf('storage rotate-key')).toSorted(), stored.toSorted())
  assert.deepEqual((await flagsOf('storage status')).toSorted(), stored.toSorted())
  assert.deepEqual(await flagsOf('audit hash'), ['config', 'data'])
  assert.ok((await flagsOf('admin reset')).includes('audit-log'))
  assert.ok(!(await flagsOf('admin reset')).includes('limits-reads'))
  assert.ok((await flagsOf('config check')).includes('limits-reads'))
})

test('no example repeats the summary of its command', async () => {
  for (const { words, what, examples } of await shownCommands())
    for (const example of examples) assert.notEqual(example.what, what, words.join(' '))
})

const offered = async (...words: string[]) =>
  (await home.ok(['__complete', '--', ...words])).split('\n').filter(Boolean)

test('completion offers commands, flags, values, kinds, contexts and live names', async () => {
  await home.ok('create team web')
  await home.ok('set secret db a=-', { stdin: 'x' })
  assert.ok((await offered('')).includes('login'))
  assert.deepEqual(await offered('cont'), ['context'])
  assert.deepEqual(await offered('context', 'u'), ['use'])
  assert.deepEqual(await offered('context', 'use', ''), ['127.0.0.1'])
  assert.deepEqual(await offered('get', 'team', 'w'), ['web'])
  assert.deepEqual(await offered('get', 'secret', ''), ['db'])
  assert.deepEqual(await offered('get', 'team', 'web', '-o', 'y'), ['yaml'])
  assert.deepEqual(await offered('get', 'team', '--no'), ['--no-headers'])
  assert.deepEqual(await offered('team', 'add-user', ''), ['web'])
  assert.deepEqual(await offered('run', '--secret', ''), ['db'])
  assert.deepEqual(await offered('share', 'secret', ''), ['db'])
  assert.deepEqual(await offered('share', 'secret', 'db', '--team', ''), ['web'])
  assert.deepEqual(await offered('list', 'te'), ['teams'])
  await home.ok('set secret there a=- -n stage', { stdin: 'x' })
  await home.ok('set secret ours a=- --project shop', { stdin: 'x' })
  for (const place of [['-n', 'stage'], ['--namespace', 'stage'], ['--namespace=stage']])
    assert.deepEqual(await offered('get', 'secret', ...place, ''), ['there'], `${place}`)
  for (const place of [['--project', 'shop'], ['--project=shop']]) {
    assert.deepEqual(await offered('get', 'secret', ...place, ''), ['ours'])
    assert.deepEqual(await offered('run', ...place, '-s', ''), ['ours'])
  }
  assert.deepEqual(await offered('get', 'team', '--context', 'nowhere', ''), [])
  await home.ok('context delete 127.0.0.1 --yes')
  assert.deepEqual(await offered('get', 'team', ''), [], 'and nothing, without a word, where nobody is signed in')
  await home.signIn(server)
})

test('a shell without a script gets the list of supported shells', async () => {
  assert.match(await home.fails(2, 'completion tcsh'), /unknown shell "tcsh": use one of bash, zsh, fish/)
})

test('every command is run by a test', async () => {
  const files = globSync('{test,src}/**/*.test.ts', { cwd: root }).map(name => readFileSync(join(root, name), 'utf8'))
  const pages = globSync(['README.md', 'docs/*.md'], { cwd: root })
    .filter(name => !name.endsWith('CLI.md'))
    .map(name => readFileSync(join(root, name), 'utf8'))
  const text = [...files, ...pages].join('\n')
  const missing = (await shownCommands())
    .map(({ words }) => words)
    .filter(words => !new RegExp(`(?<![\\w-])${words.join(`(?: |', ?'|'\\), ?')`)}(?![\\w-])`).test(text))
  assert.deepEqual(missing, [])
})
