// A deleted Cluster: its agent removes what it created, also if it was stopped at that time, and then the Cluster is gone.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import { must, soon, teams } from '../access/people.ts'
import { type AgentCluster, openAgentCluster } from '../support/agent-cluster.ts'
import { until } from '../support/cluster.ts'
import { type RunningAgent, runAgent } from './running-agent.ts'
import { type Agent, type ClusterStage, clusters, merge, openClusterStage, projectSecrets } from './stage.ts'

const projects = [{ project: 'shop', namespaces: ['shop'] }]
const finalizer = 'management.platform.sh/agent'
const path = `${clusters}/prod`

describe('a deleted Cluster', () => {
  let stage: ClusterStage
  let connected: Agent
  let cluster: AgentCluster
  let agent: RunningAgent
  before(async () => {
    stage = await openClusterStage()
    cluster = await openAgentCluster()
    cluster.namespaces.set('shop', 'Active')
    await cluster.createRole('view')
    await cluster.createSecret({ metadata: { namespace: 'shop', name: 'foreign' }, data: { token: 'AA==' } })
  })
  after(() => Promise.all([cluster.close(), stage.close()]))
  const ask = (method: string, at: string, body?: object) =>
    must(stage.admin.ask(method, at, body, method === 'PATCH' ? merge : undefined))
  const get = async () => stage.admin.ask('GET', path)

  /** Each test deletes the Cluster. A name pins the old one, so the secret selects by label. */
  beforeEach(async () => {
    connected = await stage.connect('prod', { projects }, { env: 'prod' })
    const select = { clusters: { selector: { matchLabels: { env: 'prod' } } } }
    if ((await stage.admin.ask('GET', `${teams}/web`)).status === 404) {
      await ask('POST', projectSecrets('shop'), {
        metadata: { name: 'db' },
        spec: { stringData: { token: 'first' }, deliver: [select] },
      })
      await ask('POST', teams, { metadata: { name: 'web' }, spec: { clusterRoles: [{ name: 'view', ...select }] } })
    }
    agent = runAgent(stage, connected, cluster)
    await until('the secret arrives', async () => cluster.secret('shop', 'db'))
    await until('the binding arrives', async () => cluster.binding('platform:web:view'))
    await soon('the Cluster waits for its agent', async () =>
      (await ask('GET', path)).metadata.finalizers?.includes(finalizer),
    )
  })
  const isClean = async () => !(await cluster.secret('shop', 'db')) && !(await cluster.binding('platform:web:view'))

  test('the agent removes everything of its own, and the Cluster goes', async () => {
    await ask('DELETE', path)
    await soon('the Cluster is gone', async () => (await get()).status === 404)
    assert.ok(await isClean())
    assert.ok(await cluster.secret('shop', 'foreign'))
    await until('the agent knows', async () => /rejects/.test(agent.about()))
    await agent.stop()
  })

  test('an agent that was stopped cleans up when it returns, also after a change of the labels', async () => {
    await agent.stop()
    await ask('PATCH', path, { metadata: { labels: { env: null } }, spec: { disabled: true } })
    await ask('DELETE', path)
    await soon('the condition says so', async () => {
      const { metadata, status } = await ask('GET', path)
      const found = status.conditions.find((one: { type: string }) => one.type === 'CleanedUp')
      return metadata.deletionTimestamp && found?.reason === 'WaitingForAgent'
    })
    assert.equal(await isClean(), false)
    agent = runAgent(stage, connected, cluster)
    await soon('the Cluster is gone', async () => (await get()).status === 404)
    assert.ok(await isClean())
    await agent.stop()
  })

  test('while something is left, the Cluster stays, and says why', async () => {
    cluster.deny = (verb, kind) =>
      verb === 'delete' && kind.kind === 'Secret'
        ? new ApiError(403, 'Forbidden', 'deletions are denied by policy')
        : undefined
    await ask('DELETE', path)
    await soon('the agent reports it', async () => {
      const { status } = await ask('GET', path)
      return status.problems?.some((one: { message?: string }) => /denied by policy/.test(one.message ?? ''))
    })
    assert.ok((await ask('GET', path)).metadata.finalizers.includes(finalizer))
    cluster.deny = () => undefined
    await soon('the Cluster is gone', async () => (await get()).status === 404)
    assert.ok(await isClean())
    await agent.stop()
  })

  test('a Cluster that is being deleted gets nothing', async () => {
    await agent.stop()
    await ask('DELETE', path)
    await soon('its state is empty', async () => (await ask('GET', `${path}/desired`)).items.length === 0)
    assert.deepEqual(await connected.initial(), {})
    await ask('PATCH', path, { metadata: { finalizers: null } })
    assert.equal((await get()).status, 404)
  })

  test('a Cluster whose agent never reported is deleted at once', async () => {
    await agent.stop()
    await ask('DELETE', path)
    await ask('PATCH', path, { metadata: { finalizers: null } })
    await stage.connect('idle')
    await ask('DELETE', `${clusters}/idle`)
    assert.equal((await stage.admin.ask('GET', `${clusters}/idle`)).status, 404)
  })
})
