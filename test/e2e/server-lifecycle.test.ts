// The lifecycle of a server: one per directory, reloaded certificates, and a clean shutdown (D1).

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { exec } from '../support/exec.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually, group, openBare, openWire } from '../support/wire.ts'

const teams = `${group}/teams`
const program = join(import.meta.dirname, '../../bin/platform.js')
const json = { 'content-type': 'application/json' }

const half = (server: Server, name: string) =>
  `POST ${teams} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\nContent-Type: application/json\r\nContent-Length: ${24 + name.length}\r\n\r\n{"metadata":`
const rest = (name: string) => `{"name":"${name}"}}`.padEnd(12 + name.length)

/** Until the server itself says that so many writes are under way. */
async function underWay(server: Server, writes: number): Promise<void> {
  const wire = openWire(server)
  const pattern = new RegExp(`^apiserver_current_inflight_requests\\{request_kind="mutating"\\} ${writes}$`, 'm')
  await eventually(`${writes} writes are under way`, async () => pattern.test((await wire('/metrics')).text))
}

describe('the lifecycle of a server', { timeout: 120_000, concurrency: true }, () => {
  test('a second server on the same directory fails with the reason, and the first keeps running (issue 2 §3)', async () => {
    const server = await startServer({ storage: 'sqlite' })
    try {
      const args = ['serve', '--data', server.directory, '--https', '127.0.0.1:0', '--http', '127.0.0.1:0']
      const { code, stdout, stderr } = await exec(process.execPath, [program, ...args])
      assert.notEqual(code, 0)
      assert.match(stderr, /platform: .*(in use|another|already|lock)/i)
      assert.equal(stdout.includes('is ready'), false)
      assert.equal(
        (await openWire(server)(teams, { method: 'POST', headers: json, body: '{"metadata":{"name":"first"}}' })).code,
        201,
      )
      await server.restart()
      assert.equal(
        (await openWire(server)(`${teams}/first`)).code,
        200,
        'what was acknowledged is there after a restart',
      )
    } finally {
      await server.stop()
    }
  })

  test('on shutdown readiness fails, requests in flight finish, watches end cleanly, exit 0 (issue 2 §6)', async t => {
    // The listeners stay open for long enough, also on a busy machine.
    const server = await startServer({ storage: 'sqlite', args: ['--shutdown-delay', '5'] })
    t.after(() => server.stop())
    const headers = { authorization: `Bearer ${server.adminKey}` }
    const call = httpsRequest(`${server.https}${teams}?watch=true&allowWatchBookmarks=true`, {
      ca: server.ca,
      servername: 'localhost',
      headers,
    })
    call.end()
    const [watch] = (await once(call, 'response')) as [IncomingMessage]
    watch.resume()
    const session = connectHttp2(server.https, { ca: server.ca, servername: 'localhost' })
    session.on('error', () => {})
    t.after(() => session.destroy())
    const stream = session.request({ ':path': `${teams}?watch=true`, ...headers })
    await once(stream, 'response')
    stream.resume()
    const slow = await openBare(server.http)
    slow.socket.write(half(server, 'late'))
    await underWay(server, 1)

    const ends = Promise.all([once(watch, 'end'), once(stream, 'end')])
    const stopping = server.stop()
    const wire = openWire(server, 'http')
    let ready = await wire('/readyz')
    while (ready.code === 200) ready = await wire('/readyz')
    assert.equal(ready.code, 500)
    assert.match(ready.text, /^\[-\]shutdown failed: reason withheld$/m)
    assert.equal((await wire('/livez')).code, 200, 'it is not ready any more, and well')
    assert.equal((await wire(teams)).code, 200, 'who did not notice yet is served')
    await ends
    assert.ok(watch.complete, 'the watch over HTTP/1.1 ended with its last chunk')
    assert.equal(stream.rstCode, 0, 'the watch over HTTP/2 ended without an error')
    slow.socket.write(rest('late'))
    assert.match(await slow.until('"uid"'), /^HTTP\/1\.1 201 /, 'the write under way was answered')
    await stopping
  })

  test('a client that never finishes does not block the shutdown: exit 0 (issue 2 §6)', async t => {
    const server = await startServer({ storage: 'memory' })
    t.after(() => server.stop())
    const stuck = await openBare(server.http)
    stuck.socket.write(half(server, 'never'))
    await underWay(server, 1)
    await server.stop()
    await stuck.ended()
  })

  test('half-closed connections do not block it either: exit 0 (issue 2 §6)', async t => {
    const server = await startServer({ storage: 'memory', args: ['--shutdown-delay', '1'] })
    t.after(() => server.stop())
    const port = Number(new URL(server.https).port)
    const half = { host: '127.0.0.1', port, allowHalfOpen: true }
    const silent = await openBare(server.https) // never begins with TLS
    const open = async () => {
      const socket = connectTls({ ...half, ca: server.ca, servername: 'localhost' })
      socket.on('error', () => {})
      await once(socket, 'secureConnect')
      return socket.resume()
    }
    const [idle, ended, begun] = [await open(), await open(), await open()]
    ended.end()
    begun.write('GET / HTTP/1.1\r\nHost: loc')
    await server.stop()
    for (const socket of [silent.socket, idle, ended, begun]) socket.destroy()
  })

  test('Ctrl-C in a terminal, which reaches launcher and program, stops in order (issue 2 §6)', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'platform-launcher-'))
    // An older Node in front of a terminal, as far as the launcher can see.
    const pretend = `Object.defineProperty(process.versions, 'node', { value: '20.0.0' }); process.stdin.isTTY = true`
    const data = ['--data', join(directory, 'data'), '--storage', 'memory']
    const args = ['serve', ...data, '--https', 'off', '--http', '127.0.0.1:0', '--shutdown-delay', '3']
    const child = spawn(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, program, ...args],
      { stdio: ['ignore', 'pipe', 'pipe'], detached: true },
    )
    try {
      let printed = ''
      while (!printed.includes('platform is ready')) printed += (await once(child.stdout, 'data'))[0]
      const { host } = new URL(/http:\S+/.exec(printed)?.[0] ?? '')
      const slow = await openBare(`http://${host}`)
      slow.socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n')
      // The launcher is the slower one to hear of it, by more than any grace for doubled signals.
      child.kill('SIGSTOP')
      process.kill(-(child.pid as number), 'SIGINT')
      await wait(1500)
      child.kill('SIGCONT')
      await wait(300)
      slow.socket.write('\r\n')
      assert.match(await slow.until('ok'), /^HTTP\/1\.1 200 /, 'what had begun was answered')
      slow.socket.destroy()
      await once(child, 'exit')
      assert.deepEqual([child.exitCode, child.signalCode], [0, null])
    } finally {
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), 'SIGKILL')
      await rm(directory, { recursive: true, force: true })
    }
  })

  test('certificate files are reloaded when they change; a mismatched pair is rejected (D1)', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'platform-tls-'))
    const [cert, key] = [join(directory, 'tls.crt'), join(directory, 'tls.key')]
    const authority = makeAuthority(Date.now())
    const write = async () => {
      const pair = issueCertificate(authority, ['localhost', '127.0.0.1'], Date.now())
      await writeFile(key, pair.key)
      await writeFile(cert, pair.certificate)
      return pair
    }
    await write()
    const args = [
      'serve',
      '--data',
      join(directory, 'data'),
      '--storage',
      'memory',
      '--https',
      '127.0.0.1:0',
      '--http',
      'off',
      '--tls-cert',
      cert,
      '--tls-key',
      key,
    ]
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      let printed = ''
      while (!printed.includes('platform is ready')) printed += (await once(child.stdout, 'data'))[0]
      const { port } = new URL(/https:\S+/.exec(printed)?.[0] ?? '')
      const shown = async () => {
        const socket = connectTls({
          port: Number(port),
          host: '127.0.0.1',
          servername: 'localhost',
          ca: authority.certificate,
        })
        await once(socket, 'secureConnect')
        const { fingerprint256 } = socket.getPeerCertificate()
        socket.destroy()
        return fingerprint256
      }
      const first = await shown()
      await write()
      await eventually('the new certificate is shown', async () => (await shown()) !== first)
      const second = await shown()
      await writeFile(key, 'garbage')
      await wait(1200) // one look at the files, which must change nothing
      assert.equal(await shown(), second)
    } finally {
      child.kill('SIGTERM')
      await once(child, 'exit')
      await rm(directory, { recursive: true, force: true })
    }
    assert.equal(child.exitCode, 0)
  })
})
