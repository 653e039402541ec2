// The program as its operator meets it: signals, plain HTTP, a lost administrator (D1).

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const temporary = () => mkdtempSync(join(tmpdir(), 'platform-serve-'))

test('two signals that come together end the server as one does: what is under way is finished', async () => {
  const directory = temporary()
  const args = [program, 'serve', '--data', directory, '--https', 'off', '--http', '127.0.0.1:0']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  for await (const chunk of child.stdout) {
    printed += chunk
    if (/is ready/.test(printed)) break
  }
  child.kill('SIGINT')
  await new Promise(resolve => setTimeout(resolve, 100))
  child.kill('SIGINT')
  child.kill('SIGTERM')
  const [code, signal] = await once(child, 'exit')
  assert.deepEqual([code, signal], [0, null])
  rmSync(directory, { recursive: true })
})

test('--insecure-http leaves the Host check of a loopback listener on', async () => {
  const server = await startServer({ args: ['--insecure-http'] })
  const status = await new Promise(resolve =>
    request(`${server.http}/livez`, { headers: { host: 'evil.example.org' } }, answer => {
      answer.resume()
      resolve(answer.statusCode)
    }).end(),
  )
  assert.equal(status, 421)
  await server.stop()
})

test('admin reset keeps the address in the kubeconfig where the settings name none', async () => {
  const server = await startServer()
  const before = readFileSync(server.kubeconfig, 'utf8')
  const reset = (...flags: string[]) =>
    spawnSync(process.execPath, [program, 'admin', 'reset', '--data', server.directory, ...flags], { encoding: 'utf8' })
  const address = (text: string) => /server: (\S+)/.exec(text)?.[1]
  await server.restart(async () => {
    for (const flags of [
      ['--https', '127.0.0.1:0'],
      ['--https', 'off'],
    ]) {
      assert.equal(reset(...flags).status, 0)
      assert.equal(address(readFileSync(server.kubeconfig, 'utf8')), address(before))
    }
    assert.equal(reset('--https', '0.0.0.0:9443').status, 0)
    assert.equal(address(readFileSync(server.kubeconfig, 'utf8')), 'https://127.0.0.1:9443/kubernetes/management')
  })
  assert.notEqual(readFileSync(join(server.directory, 'admin.key'), 'utf8').trim(), server.adminKey)
  assert.equal((await server.request('GET', '/apis/management.platform.sh/v1/teams')).status, 200)
  await server.stop()
})

test('a data directory that cannot be made is told in a sentence, wherever it would be', () => {
  for (const [directory, why] of [
    ['/proc/nope', /cannot be made: ENOENT/],
    [program, /cannot be made: .*platform\.js is a file/],
  ] as const) {
    const { status, stderr } = spawnSync(process.execPath, [program, 'serve', '--data', directory], { timeout: 20_000 })
    assert.equal(status, 1)
    assert.match(String(stderr), why)
  }
})
