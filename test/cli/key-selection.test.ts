// Selects the key among several sources, or none. No command uses the wrong identity, and errors name what is missing.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openHome, signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn()

const fingerprint = () => /sha256:[0-9a-f]{64}/.exec(server.output())?.[0] ?? ''
const connection = () => `${server.adminKey}@${server.https}#${fingerprint()}`

test('a key in the environment and a named context are rejected together, with a hint which one to remove', async () => {
  for (const key of [server.adminKey, connection()]) {
    const env = { PLATFORM_ACCESS_KEY: key }
    assert.match(
      await home.fails(2, 'whoami --context 127.0.0.1', { env }),
      /PLATFORM_ACCESS_KEY and --context \("127\.0\.0\.1"\) both provide a key: unset PLATFORM_ACCESS_KEY or remove --context/,
    )
    assert.match(
      await home.fails(2, 'whoami', { env: { ...env, PLATFORM_CONTEXT: '127.0.0.1' } }),
      /PLATFORM_ACCESS_KEY and PLATFORM_CONTEXT .* both provide a key: unset one of them/,
    )
  }
  const { status } = JSON.parse(
    await home.ok('credential --context 127.0.0.1', { env: { PLATFORM_ACCESS_KEY: 'x'.repeat(40) } }),
  )
  assert.equal(status.token, server.adminKey, 'a kubeconfig says whose key it goes by')
})

test('an invalid connection string is reported as such, and not repeated', async () => {
  for (const wrong of [
    `${server.adminKey}@${server.https}#sha256:12`,
    `${server.adminKey}@plane.example`,
    `${server.adminKey}#${fingerprint()}`,
    `@${server.https}`,
  ]) {
    const env = { PLATFORM_ACCESS_KEY: wrong }
    assert.match(
      await home.fails(2, 'whoami', { env }),
      /^platform: PLATFORM_ACCESS_KEY is neither a key nor a valid KEY@URL#sha256:FINGERPRINT/,
    )
  }
})

test('errors name what is missing: a server, a CA, a context, or the choice of a context', async () => {
  const own = await openHome()
  const key = { PLATFORM_ACCESS_KEY: server.adminKey }
  assert.match(
    await own.fails(2, 'whoami', { env: key }),
    /PLATFORM_ACCESS_KEY is set without a server: set PLATFORM_SERVER/,
  )
  const said = await own.fails(7, 'whoami', { env: { ...key, PLATFORM_SERVER: server.https } })
  assert.match(said, /cannot trust .*PLATFORM_CA_FILE or PLATFORM_CA_FINGERPRINT/)
  for (const args of ['kubeconfig', 'kubeconfig --merge'])
    assert.match(
      await own.fails(2, args, { env: { PLATFORM_ACCESS_KEY: connection() } }),
      /a kubeconfig needs a context, but PLATFORM_ACCESS_KEY is set: sign in with platform login/,
    )
  assert.match(await own.fails(4, 'kubeconfig'), /not signed in: platform login URL/)
  await own.signIn(server)
  await own.ok(
    ['login', server.https, '--context', 'second', '--ca-file', join(server.directory, 'ca.crt'), '--access-key', '-'],
    { stdin: server.adminKey },
  )
  await own.ok('logout')
  for (const args of ['whoami', 'kubeconfig', 'logout'])
    assert.match(
      await own.fails(4, args),
      /there is no current context: platform context use NAME; known contexts: 127\.0\.0\.1/,
    )
  for (const args of ['whoami --context nope', 'kubeconfig --context nope', 'logout --context nope'])
    assert.match(await own.fails(2, args), /unknown context "nope"; known contexts: 127\.0\.0\.1/, args)
  await own.close()
})

test('a server in the environment without a key is rejected, because it must not get the key of a context', async () => {
  const elsewhere = { PLATFORM_SERVER: 'https://elsewhere.test:8443' }
  const said = new RegExp(
    `^platform: PLATFORM_SERVER is https://elsewhere\\.test:8443, but the key of context "127\\.0\\.0\\.1" is for ${server.https}: set PLATFORM_ACCESS_KEY too, unset PLATFORM_SERVER, or use --context 127\\.0\\.0\\.1\n$`,
  )
  for (const args of ['whoami', 'list secrets', 'credential', 'kubeconfig'])
    assert.match(await home.fails(2, args, { env: elsewhere }), said, args)
  await home.ok('whoami --context 127.0.0.1', { env: elsewhere })
  await home.ok('whoami', { env: { ...elsewhere, PLATFORM_CONTEXT: '127.0.0.1' } })
  await home.ok('whoami', { env: { PLATFORM_SERVER: `${server.https}/` } })
  assert.match(await home.fails(2, 'whoami', { env: { PLATFORM_SERVER: 'ftp://x' } }), /the server must be a URL/)
  const own = await openHome()
  assert.equal(
    await own.fails(4, 'whoami', { env: elsewhere }),
    'platform: PLATFORM_SERVER is set without a key: set PLATFORM_ACCESS_KEY, or run platform login https://elsewhere.test:8443\n',
  )
  await own.close()
})

test('PLATFORM_NAMESPACE applies to contexts and keys; a flag takes precedence', async () => {
  await home.ok('set secret here a=- -n stage', { stdin: 'x' })
  for (const env of [{}, { PLATFORM_ACCESS_KEY: connection() }]) {
    const stage = { ...env, PLATFORM_NAMESPACE: 'stage' }
    assert.equal(await home.ok('list secrets -o name', { env: stage }), 'sharedsecret/here\n')
    assert.equal(await home.ok('list secrets -o name -n default', { env: stage }), '')
    assert.match(
      await home.fails(2, 'list secrets', { env: { ...env, PLATFORM_NAMESPACE: 'Stage!' } }),
      /^platform: PLATFORM_NAMESPACE: "Stage!" must be lower-case letters/,
    )
  }
})

test('a context name cannot be a path', async () => {
  for (const name of ['.', '..', 'a/b', '../x', 'a\\b', ' '])
    assert.match(
      await home.fails(2, ['login', server.https, '--context', name, '--access-key', '-'], { stdin: server.adminKey }),
      /--context: ".*" is not a valid context name/,
    )
})

// test/sign-in/terminal.test.ts has the same for a session, whose key logout revokes.
test('logout while the server is unreachable does not mention revocation of a key that it keeps', async () => {
  const at = '/apis/management.platform.sh/v1/ownedaccesskeys'
  const { body } = await server.request('POST', at, { body: { metadata: { name: 'away' }, spec: { user: 'eve' } } })
  const own = await openHome()
  await own.signIn(server, body.spec.key)
  await server.restart(async () => assert.equal((await own.run('logout')).stderr, 'Signed out of 127.0.0.1.\n'))
  await own.close()
})
