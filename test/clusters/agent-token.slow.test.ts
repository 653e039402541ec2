// An agent that signs in with the token of its service account: it is the agent of that cluster, and no other token is (D65, D68).

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { readAuthConfig } from '../../src/apiserver/sign-in.ts'
import { UsageError } from '../../src/host/command.ts'
import { keys, must, ours, refused, soon } from '../access/people.ts'
import { exchange } from '../sign-in/exchange.ts'
import { entryOf, openSignIn, type SignInStage } from '../sign-in/sign-in-stage.ts'
import { startIssuer, type TestIssuer } from '../sign-in/test-issuer.ts'
import { openAgentCluster } from '../support/agent-cluster.ts'
import { signedIn } from '../support/cli-home.ts'
import { until } from '../support/cluster.ts'
import { runAgent } from './running-agent.ts'
import { clusters, projectSecrets } from './stage.ts'

const sub = 'system:serviceaccount:platform-agent:platform-agent'
const account = { namespace: 'platform-agent', serviceAccount: 'platform-agent' }

describe('an agent with a token of its service account', () => {
  let issuer: TestIssuer
  let stage: SignInStage
  let uid: string
  const admin = (method: string, path: string, body?: object) =>
    must(stage.server.request(method, path, body === undefined ? {} : { body }))
  const create = async (name: string) =>
    (
      await admin('POST', clusters, {
        metadata: { name },
        spec: { projects: [{ project: 'shop', namespaces: ['shop'] }] },
      })
    ).metadata.uid
  const configure = (agent: object) => stage.write([entryOf(issuer, 'prod', { agent: { ...account, ...agent } })])
  before(async () => {
    issuer = await startIssuer()
    stage = await openSignIn([entryOf(issuer, 'prod')])
    uid = await create('prod')
    await create('other')
    configure({ cluster: 'prod', uid })
    const token = await issuer.sign({ sub })
    await soon('the entry is loaded', async () => (await stage.outcome(token)).startsWith('platform:cluster:'))
  })
  after(async () => {
    await stage?.close()
    await issuer.stop()
  })

  test('is the agent of its cluster, with the scope of an agent', async () => {
    const token = await issuer.sign({ sub })
    const { username, groups } = await stage.whoami(token)
    assert.equal(username, `platform:cluster:prod:${uid}`)
    assert.deepEqual([...groups].sort(), ['platform:agents', 'system:authenticated'])
    assert.equal((await stage.ask(token, 'GET', `${clusters}/prod/desired`)).status, 200)
    await refused(stage.ask(token, 'GET', `${clusters}/other/desired`), 403)
    // As with an access key of the agent.
    const spec = { subject: username, scope: { roles: [{ role: 'agent' }] } }
    const { key } = (await admin('POST', keys, { spec })).spec
    for (const path of [projectSecrets('shop'), `${projectSecrets('shop')}/db`, `${clusters}/prod`, clusters, keys])
      assert.equal((await stage.ask(token, 'GET', path)).status, (await stage.ask(key, 'GET', path)).status, path)
    await refused(stage.ask(token, 'POST', keys, { spec: { subject: username } }), 403)
    await refused(stage.ask(token, 'POST', `${ours}/directclusterendpointtokens`, { spec: {} }), 403)
  })

  test('gets no access key for its token, which would be one of another user without the scope of an agent', async () => {
    const { status, body } = await exchange(stage.server, await issuer.sign({ sub }))
    assert.deepEqual([status, body.error], [400, 'invalid_request'])
    assert.match(body.error_description, /an agent .* send the token itself/)
    const other = await issuer.sign({ sub: 'system:serviceaccount:shop:web' })
    assert.equal((await exchange(stage.server, other)).status, 200)
  })

  test('other service accounts of the cluster are not the agent', async () => {
    for (const other of [
      'system:serviceaccount:shop:platform-agent',
      'system:serviceaccount:platform-agent:other',
      `platform:cluster:prod:${uid}`,
    ]) {
      const token = await issuer.sign({ sub: other })
      const { username, groups } = await stage.whoami(token)
      assert.equal(username, `prod:${other}`)
      assert.ok(!groups.includes('platform:agents'))
      await refused(stage.ask(token, 'GET', `${clusters}/prod/desired`), 403)
    }
  })

  test('delivers secrets with a token in its key file', async () => {
    const cluster = await openAgentCluster()
    cluster.namespaces.set('shop', 'Active')
    await admin('POST', projectSecrets('shop'), {
      metadata: { name: 'db' },
      spec: { stringData: { token: 'first' }, deliver: [{ clusters: { names: ['prod'] } }] },
    })
    const agent = runAgent(stage, { cluster: 'prod', key: await issuer.sign({ sub }) }, cluster)
    await until('the secret arrives', async () => cluster.secret('shop', 'db'))
    await agent.stop()
    await cluster.close()
  })

  test('is rejected after its Cluster was deleted, also if the name exists again', async () => {
    const first = await create('gone')
    configure({ cluster: 'gone', uid: first })
    const token = await issuer.sign({ sub })
    await soon('it is the agent', async () => (await stage.outcome(token)) === `platform:cluster:gone:${first}`)
    await admin('DELETE', `${clusters}/gone`)
    await soon('it is rejected', async () => /^401 .*cluster of the agent was deleted/.test(await stage.outcome(token)))
    await create('gone')
    assert.match(await stage.outcome(token), /^401 /)
    configure({ cluster: 'prod', uid })
  })
})

test('the configuration of an agent is checked', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-agent-token-'))
  const file = join(directory, 'auth.yaml')
  const problemsOf = (...agents: readonly object[]) => {
    const jwt = agents.map((agent, index) => ({
      name: `c${index}`,
      issuer: { url: `https://c${index}.example.org`, audiences: ['a'] },
      claimMappings: { username: { claim: 'sub' } },
      agent,
    }))
    writeFileSync(file, JSON.stringify({ apiVersion: 'config.platform.sh/v1', kind: 'AuthConfig', jwt }, undefined, 1))
    try {
      readAuthConfig(file, {})
      return ''
    } catch (error) {
      assert.ok(error instanceof UsageError)
      return error.message
    }
  }
  const uid = '5eb9ca75-9047-4033-bf41-d8ccaae39267'
  assert.equal(problemsOf({ cluster: 'prod', uid, ...account }), '')
  assert.match(problemsOf({ cluster: 'prod', ...account }), /uid/)
  const all = problemsOf({ cluster: 'Prod', uid: 'x', namespace: 'A', serviceAccount: 'b:c' })
  for (const field of ['cluster', 'uid', 'namespace', 'serviceAccount'])
    assert.match(all, new RegExp(`jwt\\[0\\]\\.agent\\.${field} must be`))
  const twice = { cluster: 'prod', uid, ...account }
  assert.match(problemsOf(twice, twice), /jwt\[1\]\.agent\.uid: duplicate value/)
  rmSync(directory, { recursive: true })
})

test('connect prints manifests without a key, and the entry of auth.yaml', async () => {
  const { server, home } = await signedIn({ storage: 'memory' })
  const issuer = 'https://prod.example.org'
  const { code, stdout, stderr } = await home.run([
    ...['connect', 'cluster', 'prod', '--service-account-issuer', issuer, '-o', 'json'],
  ])
  assert.equal(code, 0, stderr)
  assert.equal((await must(server.request('GET', keys))).items.length, 1)
  const { items } = JSON.parse(stdout)
  const deployment = items.find((one: { kind: string }) => one.kind === 'Deployment')
  const volume = deployment.spec.template.spec.volumes.find((one: { name: string }) => one.name === 'key')
  assert.deepEqual(volume.projected.sources, [
    { serviceAccountToken: { audience: server.https, expirationSeconds: 3600, path: 'key' } },
  ])
  assert.ok(!items.some((one: { kind: string }) => one.kind === 'Secret'))
  const { metadata } = await must(server.request('GET', `${clusters}/prod`))
  const entry = parse(/^jwt:\n(?:[ -].*\n)+/m.exec(stderr)?.[0] ?? '')
  assert.deepEqual(entry.jwt[0].agent, { cluster: 'prod', uid: metadata.uid, ...account })
  assert.deepEqual(entry.jwt[0].issuer, { url: issuer, audiences: [server.https] })
})
