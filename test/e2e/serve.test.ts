// The server program for its operator: signals, plain HTTP, a lost administrator key (D1).

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const temporary = () => mkdtempSync(join(tmpdir(), 'platform-serve-'))

test('two simultaneous signals stop the server like one: requests in flight finish', async t => {
  const directory = temporary()
  const args = [program, 'serve', '--data', directory, '--https', 'off', '--http', '127.0.0.1:0']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
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

test('--insecure-http keeps the Host check of a loopback listener', async t => {
  const server = await startServer({ args: ['--insecure-http'] })
  t.after(() => server.stop())
  const status = await new Promise(resolve =>
    request(`${server.http}/livez`, { headers: { host: 'evil.example.org' } }, answer => {
      answer.resume()
      resolve(answer.statusCode)
    }).end(),
  )
  assert.equal(status, 421)
})

test('admin reset keeps the address in the kubeconfig if the settings have none', async t => {
  const server = await startServer()
  t.after(() => server.stop())
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
})

test('reports why it cannot create the data directory', () => {
  for (const [directory, why] of [
    ['/proc/nope', /cannot create the data directory .*ENOENT/],
    [program, /cannot create the data directory .*platform\.js is not a directory/],
  ] as const) {
    const { status, stderr } = spawnSync(process.execPath, [program, 'serve', '--data', directory], { timeout: 60_000 })
    assert.equal(status, 1)
    assert.match(String(stderr), why)
  }
})

/** The output of a failed start. */
function refusal(args: readonly string[]): readonly [number | null, string] {
  const { status, stderr } = spawnSync(
    process.execPath,
    [program, 'serve', '--https', '127.0.0.1:0', '--http', 'off', ...args],
    { timeout: 60_000, encoding: 'utf8' },
  )
  return [status, stderr]
}

test('an unusable audit log, certificate or key is reported with its setting and its file', () => {
  const data = temporary()
  const [junk, missing] = [join(data, 'junk.pem'), join(data, 'missing.pem')]
  writeFileSync(junk, 'plat_secret\n')
  const tls = (certificate: string, key: string) => ['--data', data, '--tls-cert', certificate, '--tls-key', key]
  const cases: readonly (readonly [readonly string[], string])[] = [
    [
      ['--data', data, '--audit-log', '/nonexistent/a.log'],
      'audit.log: cannot write /nonexistent/a.log: its directory does not exist',
    ],
    [['--data', data, '--audit-log', '.'], `audit.log: cannot write ${data}: it is a directory`],
    [tls(missing, junk), `tlsCert and tlsKey: cannot read ${missing}: there is no such file`],
    [
      tls(junk, junk),
      `tlsCert and tlsKey: ${junk} does not contain a PEM certificate; ${junk} does not contain a usable key: it must be PEM, without a passphrase`,
    ],
  ]
  for (const [args, said] of cases) assert.deepEqual(refusal(args), [2, `platform: ${said}\n`])
  rmSync(data, { recursive: true })
})

test('an invalid CA is reported with its file', async t => {
  const server = await startServer()
  t.after(() => server.stop())
  const file = join(server.directory, 'ca.crt')
  await server.restart(async () => {
    const before = readFileSync(file)
    writeFileSync(file, 'junk')
    const [status, said] = refusal(['--data', server.directory])
    assert.equal(status, 1)
    assert.equal(said, `platform: ${file} does not contain a PEM certificate\n`)
    writeFileSync(file, before)
  })
})

test('files without permission are rejected with their owner', () => {
  const owner = String.raw`permission denied \(it belongs to the user with id \d+, and this program runs as \d+\)\n$`
  const directory = temporary()
  chmodSync(directory, 0o555)
  assert.match(serveAsNobody(directory), new RegExp(`^cannot use the data directory: cannot write \\S+: ${owner}`))
  rmSync(directory, { recursive: true })
  // As after a copy of the key ring to a second replica.
  const second = temporary()
  writeFileSync(join(second, 'master.key'), '', { mode: 0 })
  chmodSync(second, 0o777)
  assert.match(serveAsNobody(second), new RegExp(`^masterKey: cannot read \\S+: ${owner}`))
  rmSync(second, { recursive: true })
})

/** Returns the output. Root may read and write everywhere: it becomes somebody else, once it has read the program. */
function serveAsNobody(data: string): string {
  const flags = ['--data', data, '--http', '127.0.0.1:0', '--https', 'off']
  const code = `
    const { serve } = await import(${JSON.stringify(join(import.meta.dirname, '../../src/cmd/serve.ts'))})
    if (process.geteuid() === 0) process.setuid(65534)
    await serve(${JSON.stringify(flags)}, {}).catch(({ message }) => console.log(message))
    process.exit()`
  const directory = temporary()
  const file = join(directory, 'serve.mjs')
  writeFileSync(file, code)
  const { stdout, stderr } = spawnSync(process.execPath, [file], { timeout: 60_000, encoding: 'utf8' })
  rmSync(directory, { recursive: true })
  return stdout || stderr
}
