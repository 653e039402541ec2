// `platform kubeconfig --cluster`: kubectl reaches a cluster through its gateway with short-lived tokens, of which one is created.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import { must, ours } from '../access/people.ts'
import { authority, startGateway } from '../gateway/gateway-fixture.ts'
import { signedIn } from '../support/cli-home.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'
import { startServer } from '../support/server.ts'

const [kubectl] = (await findKubectls()).toReversed()
const { server, home } = await signedIn({ storage: 'memory' })
const cluster = await startServer({ storage: 'memory', inProcess: true })
const gateway = await startGateway(server, { clusters: [{ name: 'prod', kubeconfig: cluster.kubeconfig }] })
after(() => Promise.all([gateway.stop(), cluster.stop()]))
const endpoint = { url: gateway.url, caBundle: authority.certificate }
await must(
  server.request('POST', `${ours}/clusters`, { body: { metadata: { name: 'prod' }, spec: { gateway: endpoint } } }),
)
await must(server.request('POST', `${ours}/clusters`, { body: { metadata: { name: 'dev' }, spec: {} } }))

const tokenFiles = () => {
  const all = join(home.directory, '.local/state/platform/copies')
  return readdirSync(all, { recursive: true, encoding: 'utf8' })
    .filter(name => name.includes('/token-'))
    .map(name => join(all, name))
}

test('the kubeconfig has the gateway of the cluster with its CA, or this server, and no credential', async () => {
  const prod = parse(await home.ok('kubeconfig --cluster prod'))
  const [{ cluster: there }] = prod.clusters
  assert.equal(there.server, `${gateway.url}/kubernetes/cluster/prod`)
  assert.equal(Buffer.from(there['certificate-authority-data'], 'base64').toString(), authority.certificate)
  const [{ user }] = prod.users
  assert.deepEqual(user.exec.args.slice(-6), [
    'token',
    '--cluster',
    'prod',
    '--exec-credential',
    '--context',
    '127.0.0.1',
  ])
  assert.equal(prod['current-context'], 'platform-127.0.0.1-prod')
  const dev = parse(await home.ok('kubeconfig --cluster dev'))
  assert.equal(dev.clusters[0].cluster.server, `${server.https}/kubernetes/cluster/dev`)
  assert.equal(Buffer.from(dev.clusters[0].cluster['certificate-authority-data'], 'base64').toString(), server.ca)
  const unknown = await home.run('kubeconfig --cluster other')
  assert.equal(unknown.code, 0)
  assert.match(
    unknown.stderr,
    /warning: the kubeconfig for cluster other uses https:\S+, because it has no Cluster object/,
  )
  assert.match(await home.fails(2, ['kubeconfig', '--cluster', 'a/b']), /--cluster/)
})

test('a token is for that cluster only, lives at most 15 minutes, and is cached until a minute before its end', async () => {
  const first = JSON.parse(await home.ok('token --cluster prod --exec-credential'))
  assert.equal(first.apiVersion, 'client.authentication.k8s.io/v1')
  const claims = JSON.parse(Buffer.from(first.status.token.split('.')[1], 'base64url').toString())
  assert.deepEqual(claims['platform.sh'].scope, { clusters: [{ cluster: 'prod' }] })
  assert.ok(claims.exp - claims.iat <= 900)
  assert.equal(Date.parse(first.status.expirationTimestamp), claims.exp * 1000 - 60_000)
  assert.deepEqual(JSON.parse(await home.ok('token --cluster prod --exec-credential')), first)
  const [file = ''] = tokenFiles()
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const held = JSON.parse(readFileSync(file, 'utf8'))
  for (const text of [
    JSON.stringify({ ...held, expirationTimestamp: new Date(Date.now() + 59_000).toISOString() }),
    '{"token":1}',
    'not JSON',
  ]) {
    writeFileSync(file, text)
    assert.notEqual(JSON.parse(await home.ok('token --cluster prod --exec-credential')).status.token, held.token)
  }
  const kept = await home.ok('token --cluster prod')
  assert.notEqual(await home.ok('token --cluster prod --refresh'), kept)
  assert.match(await home.fails(2, 'token'), /--cluster/)
})

test('commands that run at the same time create one token', async () => {
  const runs = Array.from({ length: 4 }, () => home.exec('token --cluster stage'))
  const tokens = (await Promise.all(runs)).map(({ stdout, stderr, code }) => {
    assert.equal(code, 0, stderr)
    return stdout
  })
  assert.equal(new Set(tokens).size, 1)
})

if (!kubectl) notRun('kubectl ≥ 1.29')
else
  test('kubectl reaches the cluster through its gateway, as the user', async () => {
    const file = join(home.directory, 'prod.kubeconfig')
    writeFileSync(file, await home.ok('kubeconfig --cluster prod'))
    const whoami = ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']
    const { stdout, stderr } = await home.by([kubectl.file, '--kubeconfig', file, ...whoami])
    assert.equal(stdout, 'admin', stderr)
  })

test('signing out deletes the cached tokens', async () => {
  assert.ok(tokenFiles().length)
  await home.ok('logout')
  assert.deepEqual(tokenFiles(), [])
})
