// The way to real Kubernetes, as far as it goes without one: the binaries are started as their documentation says, and a
// suite of the syncer runs against what they serve.

import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { exec } from '../support/exec.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-fake-kube-'))
after(() => rmSync(directory, { recursive: true }))
const program = fileURLToPath(new URL('../support/fake-kube.ts', import.meta.url))
const suite = join(import.meta.dirname, 'sync-owner.test.ts')

function binary(role: string): string {
  const file = join(directory, role)
  writeFileSync(file, `#!/bin/sh\nexec "${process.execPath}" "${program}" ${role} "$@"\n`)
  chmodSync(file, 0o755)
  return file
}

test('where KUBE_APISERVER and ETCD name binaries, a suite runs against them', { timeout: 120_000 }, async () => {
  const env = { PATH: process.env['PATH'], KUBE_APISERVER: binary('apiserver'), ETCD: binary('etcd') }
  const { code, stdout, stderr } = await exec(process.execPath, ['--test', suite], { env, timeout: 110_000 })
  assert.equal(code, 0, stdout + stderr)
  const [, tests = '0'] = /^ℹ tests (\d+)$/m.exec(stdout) ?? []
  assert.ok(Number(tests) >= 2, stdout)
  assert.match(stdout, new RegExp(`^ℹ pass ${tests}$`, 'm'), 'none of them was left out')
})

test('binaries that end are told of with what they said', { timeout: 120_000 }, async () => {
  const env = { PATH: process.env['PATH'], KUBE_APISERVER: '/bin/false', ETCD: binary('etcd'), KUBE_WITHIN: '500' }
  const { code, stdout } = await exec(process.execPath, ['--test', suite], { env, timeout: 110_000 })
  assert.equal(code, 1)
  assert.match(stdout, /the API server was not ready in time; [\s\S]*\/bin\/false ended with 1/)
})
