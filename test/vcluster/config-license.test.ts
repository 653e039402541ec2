// Licenses: which ones enable enterprise features, with test keys, and the shipped one.

import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { JsonObject } from '../../src/api/object.ts'
import { commands } from '../../src/cli/index.ts'
import { runCommand } from '../../src/cli/run-command.ts'
import {
  type License,
  licenseProblem,
  patchesFeature,
  readLicense,
  signedBytes,
} from '../../src/vcluster/config/license.ts'
import { keyName } from '../../src/vcluster/config/license-keys.ts'
import { readConfig } from '../../src/vcluster/config/read.ts'
import { fakeIo } from '../support/fake-io.ts'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const keys = { test: publicKey.export({ format: 'der', type: 'spki' }).toString('base64') }
const usual = { id: 'l-1', holder: 'Example', features: [patchesFeature], key: 'test' }
const shipped = readFileSync(join(import.meta.dirname, '../../examples/development.license'), 'utf8')
const now = Date.parse('2026-06-01T00:00:00Z')

function signed(spec: JsonObject, over: JsonObject = {}): string {
  const signature = sign(null, signedBytes(spec), privateKey).toString('base64')
  return JSON.stringify({ apiVersion: 'license.platform.sh/v1', kind: 'License', spec, signature, ...over })
}
const codeAt = (license: License | undefined, time: number) => licenseProblem(license, patchesFeature, time)?.code
const read = (text: string) => readLicense(new TextEncoder().encode(text), keys)

test('a license enables the features it names, and no others', () => {
  assert.equal(licenseProblem(read(signed(usual)), patchesFeature, now), undefined)
  assert.equal(codeAt(read(signed({ ...usual, features: [] })), now), 'LicenseFeatureMissing')
  assert.equal(codeAt(undefined, now), 'LicenseMissing')
})

test('a license is valid only in its period, with a day of clock skew at its start', () => {
  const license = read(signed({ ...usual, notBefore: '2026-06-01T12:00:00Z', expires: '2026-07-01T00:00:00Z' }))
  assert.equal(licenseProblem(license, patchesFeature, now), undefined)
  assert.equal(codeAt(license, now - 86_400_000), 'LicenseNotYetValid')
  assert.equal(codeAt(license, Date.parse('2026-07-01T00:00:00Z')), 'LicenseExpired')
})

test('a changed license, or one signed with another key, is rejected', () => {
  const text = signed(usual)
  assert.throws(() => read(text.replace('Example', 'Exampel')), { code: 'LicenseDamaged' })
  assert.throws(() => read(text.replace('"key":"test"', '"key":"toString"')), { code: 'LicenseUnknownKey' })
  assert.throws(() => readLicense(Buffer.from(text)), { code: 'LicenseUnknownKey' })
  // A trusted key cannot replace the key of the program.
  assert.throws(
    () => readLicense(Buffer.from(signed({ ...usual, key: 'platform-2026' })), { 'platform-2026': keys.test }),
    {
      code: 'LicenseDamaged',
    },
  )
})

test('an invalid license is rejected with the reason, without its content', () => {
  const secret = 'hunter2'
  const cases = ['', secret, '[]', '{"kind":"License"}', signed({ ...usual, features: secret }), 'x'.repeat(20_000)]
  for (const text of cases)
    assert.throws(
      () => read(text),
      (error: Error) => error.name === 'Error' && !error.message.includes(secret),
      text.slice(0, 40),
    )
})

test('the shipped license enables patches, and every start warns about it', async () => {
  const files = {
    'dev.license': shipped,
    'vcluster.yaml': 'sync: {toHost: {endpoints: {patches: [{path: subsets, expression: value}]}}}\n',
  }
  const io = fakeIo(files, { now: () => now })
  const config = await readConfig({ file: 'vcluster.yaml', license: 'dev.license' }, io)
  assert.equal(config.sync.toHost.endpoints.patches.length, 1)
  assert.match(io.said(), /dev\.license: warning: license development is a development license/)
})

test('validate rejects patches without a license with exit code 2, and reads the license from the environment', async () => {
  const files = {
    'dev.license': shipped,
    'vcluster.yaml': 'sync:\n  toHost:\n    endpoints:\n      patches: [{path: subsets, expression: value}]\n',
  }
  const args = ['vcluster', 'validate', '-f', 'vcluster.yaml']
  const bare = fakeIo(files, { now: () => now })
  assert.equal(await runCommand(commands, args, bare), 2)
  assert.match(bare.said(), /^platform: vcluster\.yaml:4:7: sync\.toHost\.endpoints\.patches requires a license/)
  const licensed = fakeIo(files, { now: () => now, env: { PLATFORM_LICENSE: 'dev.license' } })
  assert.equal(await runCommand(commands, args, licensed), 0)
  assert.equal(licensed.printed(), 'vcluster.yaml is valid\n')
})

test('license inspect reports an expired license and unknown features', async () => {
  const { pub, ...files } = {
    pub: publicKey.export({ format: 'pem', type: 'spki' }) as string,
    ...Object.fromEntries(
      Object.entries({ old: { expires: '2026-01-01T00:00:00Z' }, next: { features: ['vcluster.next'] } }).map(
        ([name, over]) => [name, signed({ ...usual, key: keyName(publicKey), ...over })],
      ),
    ),
  }
  const io = fakeIo({ ...files, pub }, { now: () => now })
  for (const [name, reason] of [
    ['old', 'LicenseExpired'],
    ['next', 'LicenseUnknownFeature'],
  ] as const) {
    assert.equal(await runCommand(commands, ['license', 'inspect', name, '--license-trust', 'pub'], io), 1)
    assert.match(io.printed(), new RegExp(`valid: false\nreason: ${reason}\n$`))
    assert.match(io.said(), new RegExp(`platform: ${name}: ${reason}: license l-1 `))
  }
})

test('license inspect prints a license, and rejects an invalid one', async () => {
  const io = fakeIo({ 'dev.license': shipped, other: '{}' }, { now: () => now })
  assert.equal(await runCommand(commands, ['license', 'inspect', 'dev.license'], io), 0)
  assert.match(io.printed(), /id: development[\s\S]*features:\n- vcluster\.patches\ndevelopment: true\nvalid: true/)
  assert.equal(await runCommand(commands, ['license', 'inspect', 'other'], io), 2)
  assert.equal(await runCommand(commands, ['license', 'inspect', 'none'], io), 2)
  assert.match(io.said(), /other is not a valid license: LicenseDamaged: expected apiVersion/)
})
