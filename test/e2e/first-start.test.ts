// The first start creates an administrator key, and no later start does (D1).

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeKey } from '../../src/kinds/key-format.ts'
import { makeAuthority } from '../../src/serving/certificate.ts'
import { startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const keys = '/apis/management.platform.sh/v1/ownedaccesskeys'

test('a deleted administrator key stays deleted after a restart, even as the only one (D1)', async t => {
  const server = await startServer()
  t.after(() => server.stop())
  assert.equal((await server.request('DELETE', `${keys}/admin`)).status, 200)
  await server.restart()
  assert.equal((await server.request('GET', keys)).status, 401)
})

test('the first successful start prints the path of the master key, with HTTPS or without it, and no later start does', async t => {
  for (const secure of [true, false]) {
    const directory = mkdtempSync(join(tmpdir(), 'platform-first-'))
    const taken = createServer().listen(0, '127.0.0.1')
    t.after(() => taken.close())
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const at = secure
      ? ['--https', `127.0.0.1:${port}`, '--http', 'off']
      : ['--https', 'off', '--http', `127.0.0.1:${port}`]
    const ended = spawnSync(process.execPath, [program, 'serve', '--data', directory, ...at], { encoding: 'utf8' })
    taken.close()
    assert.deepEqual([ended.status, ended.stdout], [1, ''], ended.stderr)
    const args = ['serve', '--data', directory, '--https', secure ? '127.0.0.1:0' : 'off', '--http', '127.0.0.1:0']
    const [next, later] = [await saidBy(args), await saidBy(args)]
    assert.match(next, /First start: created the administrator account/)
    assert.ok(next.includes(`access key       ${directory}/admin.key\n`), next)
    assert.match(next, /console {10}http:\/\/127\.0\.0\.1:\d+\/console\/\n/)
    assert.ok(next.includes(`encryption key   ${directory}/master.key; a copy`), next)
    assert.match(later, /^platform is ready: .*\n$/)
    rmSync(directory, { recursive: true, force: true })
  }
})

test('an incomplete or mismatched CA is not replaced, because clients trust it', async t => {
  const server = await startServer()
  t.after(() => server.kill())
  const [directory, at] = [server.directory, (name: string) => join(server.directory, name)]
  await server.die()
  const [certificate, key] = [readFileSync(at('ca.crt'), 'utf8'), readFileSync(at('ca.key'), 'utf8')]
  const serve = () =>
    spawnSync(process.execPath, [program, 'serve', '--data', directory, '--https', '127.0.0.1:0', '--http', 'off'], {
      encoding: 'utf8',
    })
  rmSync(at('ca.key'))
  assert.match(serve().stderr, /ca\.key is missing: restore it, or remove \S+ca\.crt too/)
  assert.deepEqual([readFileSync(at('ca.crt'), 'utf8'), existsSync(at('ca.key'))], [certificate, false])
  writeFileSync(at('ca.key'), makeAuthority(Date.now()).key)
  assert.match(serve().stderr, /ca\.crt and \S+ca\.key do not match/)
  writeFileSync(at('ca.key'), key)
  rmSync(at('ca.crt'))
  assert.match(serve().stderr, /ca\.crt is missing/)
  assert.equal(readFileSync(at('ca.key'), 'utf8'), key)
  rmSync(at('ca.key'))
  const said = await saidBy(['serve', '--data', directory, '--https', '127.0.0.1:0', '--http', 'off'])
  assert.match(
    said,
    /Created a new CA, sha256:[0-9a-f]{64}\. Clients still trust the previous one, and so does \S+admin\.kubeconfig/,
  )
})

test('nor at a first start: existing files are kept', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-first-'))
  const { certificate } = makeAuthority(Date.now())
  writeFileSync(join(directory, 'ca.crt'), certificate)
  const args = ['serve', '--data', directory, '--https', '127.0.0.1:0', '--http', 'off']
  for (const _ of ['once', 'again']) {
    const { status, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', timeout: 60_000 })
    assert.equal(status, 1)
    assert.match(stderr, /ca\.key is missing/)
    assert.equal(readFileSync(join(directory, 'ca.crt'), 'utf8'), certificate)
  }
  rmSync(directory, { recursive: true, force: true })
})

/** The output of a server until it is ready; then it is stopped. */
async function saidBy(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
  let said = ''
  for await (const chunk of child.stdout) {
    said += String(chunk)
    if (/is ready.*\n/.test(said)) child.kill()
  }
  return said
}

test('the next start completes a first start that ended after writing admin.key, or before it printed (D1)', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-first-'))
  const key = makeKey(size => new Uint8Array(size).fill(7))
  writeFileSync(join(directory, 'admin.key'), `${key}\n`)
  const taken = createServer().listen(0, '127.0.0.1')
  t.after(() => taken.close())
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const args = ['serve', '--data', directory, '--https', `127.0.0.1:${port}`, '--http', 'off']
  const ended = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  taken.close()
  assert.match(ended.stderr, /in use/)
  assert.equal(existsSync(join(directory, 'admin.kubeconfig')), false)
  const server = await startServer({ directory })
  t.after(() => server.stop())
  assert.match(server.output(), /First start: created the administrator account/)
  assert.equal(readFileSync(join(directory, 'admin.key'), 'utf8').trim(), key)
  assert.ok(existsSync(join(directory, 'admin.kubeconfig')))
  assert.equal((await server.request('GET', keys)).status, 200)
  await server.restart()
  assert.doesNotMatch(server.output(), /First start/)
})
