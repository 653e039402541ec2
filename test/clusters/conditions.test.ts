// Conditions of clusters, teams and secrets, from the reports of agents (D68).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, type Person, soon, teams } from '../access/people.ts'
import { type Agent, type ClusterStage, clusters, desiredOf, merge, openClusterStage, projectSecrets } from './stage.ts'

const projects = [{ project: 'shop', namespaces: ['shop'] }]
const data = { a: 'MQ==' }

describe('conditions of connected clusters', () => {
  let stage: ClusterStage
  let agent: Agent
  let admin: Person
  before(async () => {
    stage = await openClusterStage()
    admin = stage.admin
    agent = await stage.connect('prod', { projects })
  })
  after(() => stage.close())

  type Condition = { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }
  const condition = async (path: string, type: string): Promise<Condition | undefined> => {
    const { status = {} } = await must(admin.ask('GET', path))
    return status.conditions?.find((one: Condition) => one.type === type)
  }
  const until = async (path: string, type: string, status: string, reason: string) => {
    let last: unknown
    await soon(`${type} of ${path} is ${status} for ${reason}`, async () => {
      const found = await condition(path, type)
      last = found
      return found?.status === status && found.reason === reason
    }).catch(error => assert.fail(`${error.message}: ${JSON.stringify(last)}`))
    return (await condition(path, type))?.message ?? ''
  }
  /** The version up to which the agent has seen everything. */
  const seen = async (): Promise<string> => {
    for await (const { type, object } of agent.watch(desiredOf('prod')))
      if (type === 'BOOKMARK') return object.metadata.resourceVersion
    return assert.fail('no bookmark')
  }
  const report = async (problems: readonly object[] = []) =>
    must(
      agent.ask(
        'PATCH',
        `${clusters}/prod/status`,
        { status: { lastContact: new Date().toISOString(), desiredVersion: await seen(), problems } },
        merge,
      ),
    )

  test('a cluster is ready while its agent reports without problems', async () => {
    await until(`${clusters}/prod`, 'Ready', 'Unknown', 'NeverConnected')
    await report()
    await until(`${clusters}/prod`, 'Ready', 'True', 'Ready')
    await report([{ team: 'x', clusterRole: 'view', uid: 'u', reason: 'RoleNotFound', message: 'no role' }])
    assert.match(await until(`${clusters}/prod`, 'Ready', 'False', 'RoleNotFound'), /1 problem.*no role/)
    await report()
    await until(`${clusters}/prod`, 'Ready', 'True', 'Ready')
    const silent = { status: { lastContact: '2020-01-01T00:00:00Z' } }
    await must(admin.ask('PATCH', `${clusters}/prod/status`, silent, merge))
    await until(`${clusters}/prod`, 'Ready', 'False', 'AgentSilent')
  })

  test('the clock of an agent decides nothing', async () => {
    const wrong = { status: { lastContact: '2021-01-01T00:00:00Z' } }
    await must(agent.ask('PATCH', `${clusters}/prod/status`, wrong, merge))
    const { status } = await must(admin.ask('GET', `${clusters}/prod`))
    assert.ok(Date.parse(status.lastContact) > Date.parse('2026-01-01T00:00:00Z'), status.lastContact)
    await until(`${clusters}/prod`, 'Ready', 'True', 'Ready')
  })

  test('agents cannot write the conditions of the server', async () => {
    const conditions = [{ type: 'Ready', status: 'True', reason: 'Forged' }]
    await must(agent.ask('PATCH', `${clusters}/prod/status`, { status: { conditions } }, merge))
    assert.notEqual((await condition(`${clusters}/prod`, 'Ready'))?.reason, 'Forged')
  })

  test('a secret is delivered when the agent has applied its last change', async () => {
    const path = `${projectSecrets('shop')}/db`
    const deliver = [{ clusters: { names: ['prod'] } }]
    const { metadata, status } = await must(
      admin.ask('POST', projectSecrets('shop'), { metadata: { name: 'db' }, spec: { data, deliver } }),
    )
    assert.equal(status.conditions.find((one: Condition) => one.type === 'Delivered').reason, 'Pending')
    await report()
    await until(path, 'Delivered', 'True', 'Delivered')
    const place = { secret: 'p-shop/db', uid: metadata.uid, namespace: 'shop', name: 'db' }
    await report([{ ...place, reason: 'SecretExists', message: 'somebody else created it' }])
    assert.match(await until(path, 'Delivered', 'False', 'SecretExists'), /prod: shop\/db: somebody else created it/)
    await report()
    await until(path, 'Delivered', 'True', 'Delivered')
    await must(admin.ask('PATCH', path, { spec: { data: { a: 'Mg==' } } }, merge))
    await until(path, 'Delivered', 'Unknown', 'Pending')
    await report()
    await until(path, 'Delivered', 'True', 'Delivered')
    await must(admin.ask('PATCH', path, { spec: { deliver: null } }, merge))
    await soon('the condition is gone', async () => (await condition(path, 'Delivered')) === undefined)
  })

  test('a secret that is not sent says why', async () => {
    const deliverTo = (name: string, more: object) =>
      must(
        admin.ask('POST', projectSecrets('shop'), {
          metadata: { name },
          spec: { data, deliver: [{ clusters: { names: ['prod'] }, ...more }] },
        }),
      )
    await deliverTo('nowhere', { namespaces: ['other'] })
    assert.match(await until(`${projectSecrets('shop')}/nowhere`, 'Delivered', 'False', 'NoNamespace'), /prod: .*other/)
    await deliverTo('partly', { namespaces: ['shop', 'other'] })
    assert.match(await until(`${projectSecrets('shop')}/partly`, 'Delivered', 'False', 'NoNamespace'), /prod: .*other/)
    await deliverTo('unknown', { clusters: { names: ['missing'] } })
    const missing = await until(`${projectSecrets('shop')}/unknown`, 'Delivered', 'False', 'ClusterNotFound')
    assert.equal(missing, 'missing: the cluster does not exist')
    await stage.connect('missing', { projects, disabled: true })
    await until(`${projectSecrets('shop')}/unknown`, 'Delivered', 'False', 'ClusterDisabled')
    const namespaces = Array.from({ length: 250 }, (_, at) => `n${at}`)
    await stage.connect('large', { projects: [{ project: 'shop', namespaces }] })
    const deliver = ['a', 'b', 'c'].map(name => ({ clusters: { names: ['large'] }, name }))
    await must(admin.ask('POST', projectSecrets('shop'), { metadata: { name: 'many' }, spec: { data, deliver } }))
    await until(`${projectSecrets('shop')}/many`, 'Delivered', 'False', 'TooManySecrets')
    const { metadata } = await must(admin.ask('GET', `${projectSecrets('shop')}/unknown`))
    assert.match(metadata.annotations['platform.sh/cluster-uids'], /"missing"/)
  })

  test('a secret without a key that a delivery names is delivered without it, and says so', async () => {
    const path = `${projectSecrets('shop')}/keyless`
    const clusters = { names: ['prod'] }
    const deliver = [
      { clusters, keys: ['a', 'token', 'user'] },
      { clusters, name: 'all' },
    ]
    const sent = { metadata: { name: 'keyless' }, spec: { data: { a: 'MQ==', b: 'Mg==' }, deliver } }
    const warning = async (answer: ReturnType<Person['ask']>) => (await answer).headers['warning']
    assert.equal(
      await warning(admin.ask('POST', projectSecrets('shop'), sent)),
      '299 - "spec.deliver[0].keys: the secret has no keys token, user; only the others are delivered"',
    )
    await report()
    const message = await until(path, 'Delivered', 'False', 'KeysNotFound')
    assert.equal(message, 'prod: shop/keyless: the secret has no keys token, user')
    const items = await agent.initial()
    assert.deepEqual(items['secret/shop/keyless'].secret.data, { a: 'MQ==' })
    assert.deepEqual(items['secret/shop/all'].secret.data, { a: 'MQ==', b: 'Mg==' })
    const patch = (spec: object) => admin.ask('PATCH', path, { spec }, merge)
    assert.match(
      (await warning(patch({ data: { token: 'Mw==' } }))) ?? '',
      /has no key user; only the others are delivered/,
    )
    await soon('the condition follows the data', async () =>
      /: the secret has no key user$/.test((await condition(path, 'Delivered'))?.message ?? ''),
    )
    assert.equal(await warning(patch({ data: { user: 'NA==' } })), undefined)
    await report()
    await until(path, 'Delivered', 'True', 'Delivered')
    await must(admin.ask('DELETE', path))
  })

  test('objects that name a deleted cluster say so, also if the name exists again', async () => {
    const clusterRoles = [{ name: 'view', clusters: { names: ['gone'] } }]
    const deliver = [{ clusters: { names: ['gone'] } }]
    const [secret, team] = [`${projectSecrets('shop')}/of-gone`, `${teams}/of-gone`]
    const connected = await stage.connect('gone', { projects })
    await must(admin.ask('POST', teams, { metadata: { name: 'of-gone' }, spec: { clusterRoles } }))
    await must(admin.ask('POST', projectSecrets('shop'), { metadata: { name: 'of-gone' }, spec: { data, deliver } }))
    const status = { lastContact: new Date().toISOString(), desiredVersion: '999999999' }
    await must(connected.ask('PATCH', `${clusters}/gone/status`, { status }, merge))
    await until(secret, 'Delivered', 'True', 'Delivered')
    await until(team, 'ClusterRolesBound', 'True', 'Bound')
    await must(admin.ask('DELETE', `${clusters}/gone`))
    await until(secret, 'Delivered', 'False', 'ClusterNotFound')
    await until(team, 'ClusterRolesBound', 'False', 'ClusterNotFound')
    await soon('the Cluster waits for its agent', async () => {
      const { body, status } = await admin.ask('GET', `${clusters}/gone`)
      return status === 404 || body.metadata.finalizers?.length > 0
    })
    await admin.ask('PATCH', `${clusters}/gone`, { metadata: { finalizers: null } }, merge)
    await stage.connect('gone', { projects })
    assert.match(await until(secret, 'Delivered', 'False', 'ClusterReplaced'), /gone: .*apply this object again/)
    await until(team, 'ClusterRolesBound', 'False', 'ClusterReplaced')
    const again = { spec: { deliver } }
    await must(admin.ask('PATCH', secret, again, merge))
    await until(secret, 'Delivered', 'Unknown', 'Pending')
  })

  test('a team says which of its roles are not bound', async () => {
    const { metadata } = await must(
      admin.ask('POST', teams, {
        metadata: { name: 'web' },
        spec: { clusterRoles: [{ name: 'view', clusters: { names: ['prod'] } }] },
      }),
    )
    await report([{ team: 'web', uid: metadata.uid, clusterRole: 'view', reason: 'RoleNotFound', message: 'missing' }])
    assert.match(await until(`${teams}/web`, 'ClusterRolesBound', 'False', 'RoleNotFound'), /prod: view: missing/)
    await report()
    await until(`${teams}/web`, 'ClusterRolesBound', 'True', 'Bound')
  })
})
