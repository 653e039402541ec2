// A secret does not control how its consumer starts programs: such names are exported only if they are mapped by name.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import { startupVariables } from '../../src/cli/secrets/startup-variables.ts'
import { signedIn } from '../support/cli-home.ts'

const { home } = await signedIn()
const printing = [process.execPath, '-e', 'console.log(process.env.PATH, process.env.token)']
before(async () => {
  await home.ok('set secret app token=- PATH=/evil NODE_OPTIONS=--require=/evil.js', { stdin: 'fine' })
  await home.ok('set secret plain token=- MY_PATH=/kept', { stdin: 'fine' })
})

test('a whole secret with such keys is rejected, and every key is listed', async () => {
  const said = await home.fails(2, ['run', '-s', 'app', '--', ...printing])
  assert.match(said, /app\.PATH: PATH changes how programs start/)
  assert.match(said, /app\.NODE_OPTIONS: NODE_OPTIONS changes how programs start/)
  assert.match(said, /--secret app\.PATH=PATH/)
})

test('so is a single such key under its own name', async () => {
  assert.match(await home.fails(2, ['run', '-s', 'app.PATH', '--', ...printing]), /--secret app\.PATH=PATH/)
})

test('a key mapped by name is exported', async () => {
  const { stdout } = await home.exec(['run', '-s', 'app.PATH=PATH', '-s', 'app.token', '--', ...printing])
  assert.equal(stdout, '/evil fine\n')
})

test('other names are exported as before', async () => {
  const { stdout } = await home.exec([
    'run',
    '-s',
    'plain',
    '--',
    process.execPath,
    '-e',
    'console.log(process.env.MY_PATH)',
  ])
  assert.equal(stdout, '/kept\n')
})

test('shell exports reject such keys, and other formats do not', async () => {
  const said = await home.fails(2, ['export', 'secret', 'app', '--format', 'shell'])
  for (const name of ['PATH', 'NODE_OPTIONS'])
    assert.match(said, new RegExp(`^.*${name} changes how programs start`, 'm'))
  assert.doesNotMatch(said, /evil/)
  for (const format of ['dotenv', 'json', 'yaml'])
    assert.match(await home.ok(['export', 'secret', 'app', '--format', format]), /PATH/)
  assert.match(await home.ok(['export', 'secret', 'plain', '--format', 'shell']), /export MY_PATH='\/kept'/)
})

test('names of npm are rejected in any case', async () => {
  for (const name of ['Npm_config_node_options', 'npm_config_node_options', 'Pnpm_Config_x', 'yarn_rc_filename']) {
    await home.ok(['set', 'secret', 'mixed', `${name}=x`])
    assert.match(await home.fails(2, ['run', '-s', 'mixed', '--', 'true']), new RegExp(`mixed\\.${name}: `))
    await home.ok(['delete', 'secret', 'mixed', '--yes'])
  }
})

test('every documented name is rejected', async () => {
  for (const name of Object.values(startupVariables).flat()) {
    const variable = name.replace('*', 'X')
    await home.ok(['set', 'secret', 'one', `${variable}=x`])
    assert.match(await home.fails(2, ['run', '-s', 'one', '--', 'true']), new RegExp(`one\\.${variable}: `))
    await home.ok(['delete', 'secret', 'one', '--yes'])
  }
})

test('docs/CLI.md contains the list', () => {
  const page = readFileSync(new URL('../../docs/CLI.md', import.meta.url), 'utf8')
  for (const [reader, names] of Object.entries(startupVariables))
    assert.ok(page.includes(`| ${reader} | ${names.map(name => `\`${name}\``).join(', ')} |`), reader)
})
