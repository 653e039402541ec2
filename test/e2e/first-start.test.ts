// The first start makes an administrator's key, and no later one does (D1).

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeKey } from '../../src/kinds/key-format.ts'
import { startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const keys = '/apis/management.platform.sh/v1/ownedaccesskeys'

test('an administrator’s key that was deleted stays deleted after a restart, even as the only one (D1)', async () => {
  const server = await startServer()
  assert.equal((await server.request('DELETE', `${keys}/admin`)).status, 200)
  await server.restart()
  assert.equal((await server.request('GET', keys)).status, 401)
  await server.stop()
})

test('a first start that ended after writing admin.key, or before it could tell, is finished by the next one (D1)', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-first-'))
  const key = makeKey(size => new Uint8Array(size).fill(7))
  writeFileSync(join(directory, 'admin.key'), `${key}\n`)
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const args = ['serve', '--data', directory, '--https', `127.0.0.1:${port}`, '--http', 'off']
  const ended = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  taken.close()
  assert.match(ended.stderr, /in use/)
  assert.equal(existsSync(join(directory, 'admin.kubeconfig')), false)
  const server = await startServer({ directory })
  assert.match(server.output(), /First start: an administrator was made/)
  assert.equal(readFileSync(join(directory, 'admin.key'), 'utf8').trim(), key)
  assert.ok(existsSync(join(directory, 'admin.kubeconfig')))
  assert.equal((await server.request('GET', keys)).status, 200)
  await server.restart()
  assert.doesNotMatch(server.output(), /First start/)
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})
