// A real server, an agent and a cluster: grants of the server arrive in the cluster, and end there.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, soon, teams } from '../access/people.ts'
import { type AgentCluster, openAgentCluster } from '../support/agent-cluster.ts'
import { until } from '../support/cluster.ts'
import { type RunningAgent, runAgent } from './running-agent.ts'
import {
  type ClusterStage,
  type Agent as Connected,
  clusters,
  merge,
  openClusterStage,
  projectSecrets,
} from './stage.ts'

const projects = [{ project: 'shop', namespaces: ['shop'] }]
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('a connected cluster', () => {
  let stage: ClusterStage
  let connected: Connected
  let cluster: AgentCluster
  let agent: RunningAgent
  before(async () => {
    stage = await openClusterStage()
    connected = await stage.connect('prod', { projects })
    cluster = await openAgentCluster()
    cluster.namespaces.set('shop', 'Active')
    agent = runAgent(stage, connected, cluster)
  })
  after(async () => {
    await agent.stop()
    await Promise.all([cluster.close(), stage.close()])
  })
  const ask = (method: string, path: string, body?: object) =>
    must(stage.admin.ask(method, path, body, method === 'PATCH' ? merge : undefined))
  const condition = async (path: string, type: string) => {
    const { status } = await ask('GET', path)
    return status?.conditions?.find((one: { type: string }) => one.type === type)
  }
  const has = (name: string, value: string | undefined) =>
    until(`the Secret ${name} is ${value}`, async () => {
      const found = await cluster.secret('shop', name)
      return found?.data?.['token'] === (value === undefined ? undefined : base64(value))
    })

  test('gets a secret, its changes, and its end', async () => {
    const path = `${projectSecrets('shop')}/db`
    await ask('POST', projectSecrets('shop'), {
      metadata: { name: 'db' },
      spec: { stringData: { token: 'first' }, deliver: [{ clusters: { names: ['prod'] } }] },
    })
    await has('db', 'first')
    await soon('it is delivered', async () => (await condition(path, 'Delivered'))?.status === 'True')
    await ask('PATCH', path, { spec: { stringData: { token: 'second' } } })
    await has('db', 'second')
    await soon('it is delivered', async () => (await condition(path, 'Delivered'))?.status === 'True')
    await soon('the cluster is ready', async () => (await condition(`${clusters}/prod`, 'Ready'))?.status === 'True')
    await ask('DELETE', path)
    await has('db', undefined)
  })

  test('gets the roles of a team, and says which it lacks', async () => {
    await ask('POST', teams, {
      metadata: { name: 'web' },
      spec: { clusterRoles: [{ name: 'missing', clusters: { names: ['prod'] } }] },
    })
    await soon('the role is missing', async () => {
      const found = await condition(`${teams}/web`, 'ClusterRolesBound')
      return found?.status === 'False' && found.reason === 'RoleNotFound'
    })
    await ask('PATCH', `${teams}/web`, { spec: { clusterRoles: null } })
    await soon('the condition is gone', async () => !(await condition(`${teams}/web`, 'ClusterRolesBound')))
  })

  test('a foreign Secret stays, and the condition says so', async () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 'foreign' } }
    await cluster.createSecret({ ...secret, type: 'Opaque', data: { token: base64('theirs') } })
    await ask('POST', projectSecrets('shop'), {
      metadata: { name: 'foreign' },
      spec: { stringData: { token: 'ours' }, deliver: [{ clusters: { names: ['prod'] } }] },
    })
    const path = `${projectSecrets('shop')}/foreign`
    await soon('it says so', async () => (await condition(path, 'Delivered'))?.reason === 'SecretExists')
    assert.equal((await cluster.secret('shop', 'foreign'))?.data?.['token'], base64('theirs'))
    await ask('DELETE', path)
  })

  test('after its key is deleted the agent writes nothing, and leaves the Secrets', async () => {
    await ask('POST', projectSecrets('shop'), {
      metadata: { name: 'kept' },
      spec: { stringData: { token: 'kept' }, deliver: [{ clusters: { names: ['prod'] } }] },
    })
    await has('kept', 'kept')
    const { items } = await ask('GET', keys)
    const own = items.find((one: { spec: { subject?: string } }) => one.spec.subject === connected.name)
    await ask('DELETE', `${keys}/${own.metadata.name}`)
    await until('the agent knows', async () => /rejects/.test(agent.about()))
    await ask('DELETE', `${projectSecrets('shop')}/kept`)
    assert.equal((await cluster.secret('shop', 'kept'))?.data?.['token'], base64('kept'))
  })
})
