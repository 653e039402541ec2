// The operator issues licenses with their own key, and the commands of the syncer trust its public key.

import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { runHere } from '../support/run-in-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-license-'))
after(() => rmSync(directory, { recursive: true }))
const at = (name: string) => join(directory, name)
const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  runHere(args, { env, directory, stdin: '', tell: () => {} })

writeFileSync(
  at('vcluster.yaml'),
  'sync:\n  toHost:\n    endpoints:\n      patches: [{path: subsets, expression: value}]\n',
)
const year = '365d'
const terms = (key: string) => ['--holder', 'Example Ltd', '--feature', 'vcluster.patches', '--key', at(key)]
const issue = (key: string, more: readonly string[]) => run(['license', 'issue', ...terms(key), ...more])
const validate = (more: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  run(['vcluster', 'validate', '-f', at('vcluster.yaml'), ...more], env)

async function keyPair(name: string): Promise<string> {
  const { code, stderr } = await run(['license', 'keygen', '--key', at(name)])
  assert.equal(code, 0, stderr)
  return at(`${name}.pub`)
}
const [trust, other] = [await keyPair('license.key'), await keyPair('other.key')]

async function licensed(name: string, more: readonly string[], key = 'license.key'): Promise<string> {
  const { code, stderr } = await issue(key, [...more, '--out', at(name)])
  assert.equal(code, 0, stderr)
  return at(name)
}

test('keygen writes the private key for its owner only, and overwrites nothing', async () => {
  assert.equal(statSync(at('license.key')).mode & 0o777, 0o600)
  assert.equal(statSync(trust).mode & 0o777, 0o644 & ~process.umask())
  assert.match(readFileSync(at('license.key'), 'utf8'), /^-----BEGIN PRIVATE KEY-----\n/)
  const before = [at('license.key'), trust].map(file => readFileSync(file, 'utf8'))
  const again = await run(['license', 'keygen', '--key', at('license.key')])
  assert.equal(again.code, 2)
  assert.match(again.stderr, /license\.key(\.pub)? already exists/)
  rmSync(at('license.key'))
  assert.equal((await run(['license', 'keygen', '--key', at('license.key')])).code, 2)
  assert.throws(() => statSync(at('license.key')), { code: 'ENOENT' })
  writeFileSync(at('license.key'), before[0] as string, { mode: 0o600 })
  assert.equal(readFileSync(trust, 'utf8'), before[1])
})

test('a license of the operator enables patches for every command that trusts its public key', async () => {
  const file = await licensed('good.license', ['--expires', year, '--id', 'l-7'])
  const object = at('endpoints.yaml')
  writeFileSync(object, 'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web, namespace: default}\n')
  const flags = ['--license', file, '--license-trust', other, '--license-trust', trust]
  assert.deepEqual(await validate(flags), { code: 0, stdout: `${at('vcluster.yaml')} is valid\n`, stderr: '' })
  const variables = { PLATFORM_LICENSE: file, PLATFORM_LICENSE_TRUST: trust }
  assert.equal((await validate([], variables)).code, 0)
  for (const command of ['patch', 'preview']) {
    const args = ['-f', at('vcluster.yaml'), '--name', 'vc', '-n', 'team', '--object', object]
    const { code, stdout, stderr } = await run(['vcluster', command, ...args, ...flags])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /name: web-x-default-x-vc/)
  }
  const shown = await run(['license', 'inspect', file, '--license-trust', trust])
  assert.equal(shown.code, 0, shown.stderr)
  assert.match(shown.stdout, /^id: l-7\nholder: Example Ltd\nkey: ed25519-[0-9a-f]{16}\nexpires: "[^\n]+"\nfeatures:\n/)
  const sync = ['--name', 'vc', '-n', 'team', '--virtual-kubeconfig', at('none')]
  const { stderr } = await run(['vcluster', 'sync', '-f', at('vcluster.yaml'), ...sync, '--license', file])
  assert.match(stderr, /LicenseUnknownKey/)
  const trusted = await run(['vcluster', 'sync', '-f', at('vcluster.yaml'), ...sync, ...flags])
  assert.doesNotMatch(trusted.stderr, /License/)
})

test('one file may hold several trusted keys', async () => {
  const bundle = at('bundle.pub')
  writeFileSync(bundle, readFileSync(other))
  appendFileSync(bundle, readFileSync(trust))
  const file = await licensed('bundle.license', ['--expires', year])
  assert.equal((await validate(['--license', file, '--license-trust', bundle])).code, 0)
})

test('issue prints the license without --out, and does not overwrite a file', async () => {
  const { stdout, code } = await issue('license.key', ['--expires', year])
  assert.equal(code, 0)
  assert.equal(JSON.parse(stdout).kind, 'License')
  const file = await licensed('once.license', ['--expires', year])
  const again = await issue('license.key', ['--expires', year, '--out', file])
  assert.equal(again.code, 2)
  assert.match(again.stderr, /once\.license already exists/)
})

test('an invalid license is rejected with the code of the reason', async () => {
  const good = await licensed('one.license', ['--expires', year])
  const text = readFileSync(good, 'utf8')
  writeFileSync(at('changed.license'), text.replace('Example Ltd', 'Example Inc'))
  writeFileSync(at('cut.license'), text.slice(0, 60))
  const later = await licensed('later.license', ['--not-before', '2100-01-01', '--expires', '2101-01-01'])
  for (const [file, reason] of [
    [at('changed.license'), 'LicenseDamaged'],
    [at('cut.license'), 'LicenseDamaged'],
    [later, 'LicenseNotYetValid'],
    [await licensed('foreign.license', ['--expires', year], 'other.key'), 'LicenseUnknownKey'],
  ] as const) {
    const flags = ['--license-trust', trust]
    const validated = await validate(['--license', file, ...flags])
    assert.equal(validated.code, 2, file)
    assert.match(validated.stderr, new RegExp(`: ${reason}: `))
    const shown = await run(['license', 'inspect', file, ...flags])
    assert.equal(shown.code, reason === 'LicenseNotYetValid' ? 1 : 2)
    assert.match(shown.stderr, new RegExp(`: ${reason}: `))
  }
  assert.match((await validate([])).stderr, /requires a license: LicenseMissing: /)
  // The key of the program itself is always trusted.
  const development = join(import.meta.dirname, '../../examples/development.license')
  const both = await validate(['--license', development, '--license-trust', trust])
  assert.equal(both.code, 0)
  assert.match(both.stderr, /is a development license/)
})

test('issue rejects unknown features, a past expiry and a key that cannot sign', async () => {
  const common = ['license', 'issue', '--holder', 'Example', '--expires', year, '--key', at('license.key')]
  const unknown = await run([...common, '--feature', 'vcluster.magic'])
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /LicenseUnknownFeature: "vcluster\.magic".*vcluster\.patches/)
  for (const [more, problem] of [
    [['--expires', '2020-01-01'], /--expires: .*in the past/],
    [['--expires', 'soon'], /--expires: "soon" must be/],
    [['--expires', '2027-01-01', '--not-before', '2028-01-01'], /--not-before must be before --expires/],
  ] as const) {
    const { code, stderr } = await issue('license.key', more)
    assert.equal(code, 2)
    assert.match(stderr, problem)
  }
  assert.equal((await run([...common])).code, 2)
  const unsigned = await issue('license.key.pub', ['--expires', year])
  assert.equal(unsigned.code, 2)
  assert.match(unsigned.stderr, /license\.key\.pub is not an Ed25519 private key/)
})

test('--license-trust rejects a private key and files without keys', async () => {
  const file = await licensed('trusted.license', ['--expires', year])
  for (const [name, problem] of [
    ['license.key', /license\.key is a private key.*\.pub/],
    ['vcluster.yaml', /vcluster\.yaml is not an Ed25519 public key/],
    ['absent.pub', /absent\.pub/],
  ] as const) {
    const { code, stderr } = await validate(['--license', file, '--license-trust', at(name)])
    assert.equal(code, 2)
    assert.match(stderr, problem)
    assert.doesNotMatch(stderr, /BEGIN/)
  }
})
