// The agent inside `platform gateway`: its checks, readiness, metrics and log.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { must } from '../access/people.ts'
import { agentKey, configOf, invite, startGateway } from '../gateway/gateway-fixture.ts'
import { openAgentCluster } from '../support/agent-cluster.ts'
import { until } from '../support/cluster.ts'
import { exec } from '../support/exec.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'
import { type Server, startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')

describe('platform gateway with an agent', () => {
  let service: Server
  let directory: string
  before(async () => {
    service = await startServer({ storage: 'memory' })
    directory = mkdtempSync(join(tmpdir(), 'platform-agent-'))
  })
  after(async () => {
    await service.stop()
    rmSync(directory, { recursive: true })
  })
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text)

  test('--check reports missing permissions in the cluster, and a cluster that the management API does not know', async () => {
    const { key } = await invite(service, 'nobody')
    put('nobody.json', kubeconfigOf(`${service.https}/kubernetes/management`, { token: key, ca: service.ca }))
    put('service-ca.crt', service.ca)
    put('agent.key', await agentKey(service))
    const over = {
      tls: { directory: 'tls' },
      clusters: [{ name: 'prod', kubeconfig: 'nobody.json' }],
      agent: { cluster: 'prod', namespace: 'agents' },
    }
    put('gateway.yaml', JSON.stringify(configOf(service, over)))
    const file = join(directory, 'gateway.yaml')
    const { code, stderr } = await exec(process.execPath, [program, 'gateway', '--config', file, '--check'])
    assert.equal(code, 2, stderr)
    assert.match(
      stderr,
      /agent: the agent has no permission to get clusterrolebindings, .*update leases in namespace agents, .*update configmaps in namespace agents in cluster prod/,
    )
    assert.match(stderr, /agent\.cluster: the management API rejects the agent of cluster prod: .*create the cluster/)
  })

  test('a gateway is ready without its agent, and readiness, metrics and log have the state of the agent', async () => {
    const kubeconfig = kubeconfigOf(`${service.https}/kubernetes/management`, {
      token: service.adminKey,
      ca: service.ca,
    })
    const over = { clusters: [{ name: 'prod', kubeconfig: 'slow.json' }], agent: { cluster: 'prod' } }
    const gateway = await startGateway(service, over, { kubeconfig })
    const get = async (path: string) => (await fetch(`${gateway.status}${path}`)).text()
    await until('readiness says so', async () =>
      /\[\+\]agent ok: the management API rejects/.test(await get('/readyz?verbose')),
    )
    const metrics = await get('/metrics')
    for (const line of [
      'platform_agent_leader 0',
      'platform_agent_problems 0',
      'platform_agent_objects{kind="Secret"} 0',
    ])
      assert.ok(metrics.includes(`${line}\n`), line)
    assert.match(gateway.output(), /the management API rejects the agent: it writes nothing/)
    const before = gateway.output().length
    gateway.write({ ...over, agent: undefined })
    await until('the agent has gone', async () => !(await get('/readyz?verbose')).includes('rejects'))
    gateway.write({ ...over, agent: { cluster: 'prod', namespace: 'agents' } })
    await until('it runs again', async () => /rejects the agent/.test(gateway.output().slice(before)))
    await gateway.stop()
  })

  test('a token for a cluster that was deleted is not for the one that has its name now', async () => {
    const api = '/apis/management.platform.sh/v1'
    const cluster = await openAgentCluster()
    const kubeconfig = kubeconfigOf(cluster.access.server)
    const connect = async () => {
      const { metadata } = await must(
        service.request('POST', `${api}/clusters`, { body: { metadata: { name: 'again' } } }),
      )
      const spec = { subject: `platform:cluster:again:${metadata.uid}`, scope: { roles: [{ role: 'agent' }] } }
      const { spec: key } = await must(service.request('POST', `${api}/ownedaccesskeys`, { body: { spec } }))
      const token = { spec: { ttl: 600, scope: { clusters: [{ cluster: 'again' }] } } }
      const { status } = await must(service.request('POST', `${api}/directclusterendpointtokens`, { body: token }))
      return { key: key.key as string, token: status.token as string }
    }
    const ask = async ({ key }: { key: string }, tokens: readonly string[]) => {
      const over = { clusters: [{ name: 'again', kubeconfig: 'slow.json' }], agent: { cluster: 'again' } }
      const gateway = await startGateway(service, over, { kubeconfig, key })
      await until('the agent knows its cluster', async () =>
        /\[\+\]agent ok: leading/.test(await (await fetch(`${gateway.status}/readyz?verbose`)).text()),
      )
      const answers = []
      for (const token of tokens)
        answers.push(await gateway.request('GET', '/kubernetes/cluster/again/version', { key: token }))
      await gateway.stop()
      return answers
    }
    const first = await connect()
    const [before] = await ask(first, [first.token])
    assert.equal(before?.status, 200, before?.text)
    await must(service.request('DELETE', `${api}/clusters/again`))
    // As `platform disconnect cluster --keep-cluster` does it.
    const headers = { 'content-type': 'application/merge-patch+json' }
    await service.request('PATCH', `${api}/clusters/again`, { headers, body: { metadata: { finalizers: null } } })
    const second = await connect()
    const [old, fresh] = await ask(second, [first.token, second.token])
    assert.deepEqual([old?.status, fresh?.status], [403, 200], old?.text)
    assert.match(old?.text ?? '', /another cluster that had the name again/)
    await cluster.close()
  })
})
