// The ownership of the cached values of `platform run`: one key at one server.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fingerprintOf } from '../../src/cli/login/trust.ts'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { closeAll } from '../support/close-all.ts'
import { type Server, startServer } from '../support/server.ts'

let server: Server
let other: Server
let home: CliHome
before(async () => {
  server = await startServer()
  other = await startServer({ storage: 'memory' })
  home = await openHome()
  await home.signIn(server)
  await home.ok('set secret app token=-', { stdin: 'canary-one' })
})
after(() => closeAll(home.close, other.stop, server.stop))

const fingerprint = () => fingerprintOf(new X509Certificate(server.ca))
const env = { PLATFORM_PASSPHRASE: 'correct horse' }
const args = ['run', '-s', 'app', '--', process.execPath, '-e', 'process.stdout.write(process.env.token)']
const copies = () =>
  readdirSync(join(home.directory, '.local/state/platform/copies'), { recursive: true, withFileTypes: true })
    .filter(one => one.isFile())
    .map(one => one.name)
const loginAs = (name: string, key: string) =>
  home.ok(['login', server.https, '--context', name, '--ca-file', `${server.directory}/ca.crt`, '--access-key', '-'], {
    stdin: key,
  })

test('a cached copy belongs to the key that fetched it: another key has none, even with the same name', async () => {
  const narrow = (await home.ok('create accesskey narrow --scope-project shop')).trim()
  await loginAs('narrow', narrow)
  await home.ok('context use 127.0.0.1')
  assert.equal((await home.run(['--context', 'narrow', ...args], { env })).code, 5)
  assert.equal((await home.exec(args, { env })).stdout, 'canary-one')
  const unknown = { ...env, PLATFORM_ACCESS_KEY: 'no-key-at-all' }
  await server.restart(async () => {
    for (const [words, more] of [
      [['--context', 'narrow', ...args], env],
      [args, unknown],
    ] as const) {
      const { code, stdout, stderr } = await home.run(words, { env: more })
      assert.deepEqual([code, stdout], [7, ''], stderr)
      assert.match(stderr, /no cached copy of app:/)
    }
    assert.equal((await home.run(args, { env })).stdout, 'canary-one', 'whose it is has it')
    const nothing = await home.run(['run', '-s', 'app.other', ...args.slice(3)], { env })
    assert.match(nothing.stderr, /no cached copy of app\.other:/)
    const keyless = await home.run(args)
    assert.match(keyless.stderr, /no cached copy of app: caching requires a keychain or PLATFORM_PASSPHRASE/)
  })
})

test('an untrusted server does not count as unreachable: nothing runs', async () => {
  assert.equal((await home.run(args, { env })).stdout, 'canary-one')
  const file = join(home.directory, '.config/platform/contexts.json')
  const kept = readFileSync(file, 'utf8')
  const changed = JSON.parse(kept) as { contexts: { [name: string]: { ca: string } } }
  for (const one of Object.values(changed.contexts)) one.ca = other.ca
  writeFileSync(file, JSON.stringify(changed))
  const { code, stdout, stderr } = await home.run(args, { env })
  writeFileSync(file, kept)
  assert.deepEqual([code, stdout], [7, ''], stderr)
  assert.match(stderr, /cannot trust .*nothing was sent/)
  const zeros = `sha256:${'0'.repeat(64)}`
  const pipeline = { ...env, PLATFORM_ACCESS_KEY: `${server.adminKey}@${server.https}#${zeros}` }
  const wrong = await home.run(args, { env: pipeline })
  assert.deepEqual([wrong.code, wrong.stdout], [7, ''], wrong.stderr)
  assert.match(wrong.stderr, /cannot trust https:\S+ its CA is/)
})

test('a server without TLS, or with broken TLS, is not trusted either: nothing runs', async () => {
  assert.equal((await home.run(args, { env })).stdout, 'canary-one')
  const pipeline = { ...env, PLATFORM_ACCESS_KEY: `${server.adminKey}@${server.https}#${fingerprint()}` }
  assert.equal((await home.run(args, { env: pipeline })).stdout, 'canary-one')
  await server.restart(async () => {
    for (const [answer, said] of [
      ['HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n', /does not speak TLS/],
      // An alert of TLS: the handshake has failed.
      [
        Buffer.from([21, 3, 3, 0, 2, 2, 40]),
        /^platform: cannot reach \S+: the TLS handshake failed: ssl\/tls alert handshake failure$/m,
      ],
    ] as const) {
      const stranger = createServer(socket => socket.on('error', () => {}).once('data', () => socket.end(answer)))
      stranger.listen(Number(new URL(server.https).port), '127.0.0.1')
      await once(stranger, 'listening')
      try {
        for (const one of [env, pipeline]) {
          const { code, stdout, stderr } = await home.run(args, { env: one })
          assert.deepEqual([code, stdout], [7, ''], stderr)
          assert.match(stderr, said)
        }
      } finally {
        stranger.close()
        await once(stranger, 'close')
      }
    }
  })
})

test('copies in a layout that no release reads are deleted, and nothing else', async () => {
  const directory = join(home.directory, '.local/state/platform/copies')
  const old = ['0', 'f'].map(one => join(directory, one.repeat(64)))
  const others = join(directory, 'notes.txt')
  writeFileSync(others, 'of somebody')
  for (const end of [
    () => home.run(args, { env }),
    async () => {
      await loginAs('sweeping', server.adminKey)
      await home.ok('logout --context sweeping')
      await home.ok('context use 127.0.0.1')
    },
  ]) {
    for (const one of old) writeFileSync(one, 'sealed')
    await end()
    assert.deepEqual(old.filter(existsSync), [])
    assert.equal(readFileSync(others, 'utf8'), 'of somebody')
  }
  assert.equal((await home.run(args, { env })).stdout, 'canary-one')
})

test('a denial is final, and deletes the copy', async () => {
  const key = (await home.ok('create accesskey ended')).trim()
  await loginAs('ended', key)
  await home.ok('context use 127.0.0.1')
  assert.equal((await home.run(args, { env })).code, 0)
  const before = copies()
  const ended = ['--context', 'ended', ...args]
  assert.equal((await home.run(ended, { env })).stdout, 'canary-one')
  assert.equal(copies().length, before.length + 1)
  await home.ok('disable accesskey ended')
  const { code, stdout, stderr } = await home.run(ended, { env })
  assert.deepEqual([code, stdout], [4, ''], stderr)
  assert.deepEqual(copies(), before)
})

test('logout, context delete, another login under the same name and a rotation delete the copies of a key', async () => {
  const key = (await home.ok('create accesskey passing')).trim()
  const next = (await home.ok('create accesskey next')).trim()
  assert.equal((await home.run(args, { env })).code, 0)
  const before = copies()
  for (const end of [
    () => home.ok('logout --context passing'),
    () => home.ok('context delete passing --yes'),
    () => loginAs('passing', next),
    () => home.ok('rotate accesskey passing --yes --context passing'),
  ]) {
    await loginAs('passing', key)
    await home.ok('context use 127.0.0.1')
    assert.equal((await home.run(['--context', 'passing', ...args], { env })).code, 0)
    assert.equal(copies().length, before.length + 1)
    await end()
    assert.deepEqual(copies(), before, 'those of others stay')
  }
})
