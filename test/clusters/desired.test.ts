// The watch of an agent: the whole state, then changes (D68, D69).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, refused, soon, teams } from '../access/people.ts'
import type { WatchEvent } from '../support/request.ts'
import {
  type Agent,
  type ClusterStage,
  clusters,
  desiredOf,
  merge,
  openClusterStage,
  projectSecrets,
  untilItems,
} from './stage.ts'

const projects = [{ project: 'shop', namespaces: ['shop', 'shop-jobs'] }]
const data = { password: 'aHVudGVyMg==', user: 'YWRh' }

describe('the desired state of a cluster', () => {
  let stage: ClusterStage
  let agent: Agent
  before(async () => {
    stage = await openClusterStage()
    agent = await stage.connect('prod', { projects }, { region: 'eu' })
  })
  after(() => stage.close())
  const deliver = (name: string, more: object = {}, project = 'shop') =>
    must(
      stage.admin.ask('POST', projectSecrets(project), {
        metadata: { name },
        spec: { data, deliver: [{ clusters: { names: ['prod'] }, ...more }] },
      }),
    )
  const change = (path: string, body: object) => must(stage.admin.ask('PATCH', path, body, merge))

  test('begins with everything and a bookmark, then shows changes, with the data', async () => {
    const { metadata } = await deliver('db', { namespaces: ['shop'], type: 'kubernetes.io/basic-auth' })
    await untilItems(agent, 'secret/shop/db')
    const events = agent.watch(desiredOf('prod'))[Symbol.asyncIterator]()
    const next = async (): Promise<WatchEvent> => {
      const { value } = await events.next()
      return value
    }
    const first = await next()
    assert.equal(first.type, 'ADDED')
    assert.deepEqual(first.object.secret, {
      namespace: 'shop',
      name: 'db',
      type: 'kubernetes.io/basic-auth',
      data,
      source: { namespace: 'p-shop', name: 'db', uid: metadata.uid },
    })
    const bookmark = await next()
    assert.equal(bookmark.object.metadata.annotations['k8s.io/initial-events-end'], 'true')
    await change(`${projectSecrets('shop')}/db`, { spec: { data: { password: 'bmV3' } } })
    const changed = await next()
    assert.deepEqual([changed.type, changed.object.secret.data.password], ['MODIFIED', 'bmV3'])
    assert.equal((await next()).type, 'BOOKMARK')
    await change(`${projectSecrets('shop')}/db`, { spec: { deliver: null } })
    const deleted = await next()
    assert.deepEqual([deleted.type, deleted.object.metadata.name], ['DELETED', 'secret/shop/db'])
    assert.ok(Number((await next()).object.metadata.resourceVersion) > 0)
    await events.return?.()
    await must(stage.admin.ask('DELETE', `${projectSecrets('shop')}/db`))
  })

  test('only namespaces of the project, only the chosen keys, under the chosen name', async () => {
    await deliver('keys', { namespaces: ['shop', 'other'], name: 'renamed', keys: ['user', 'missing'] })
    await deliver('foreign', {}, 'games')
    await untilItems(agent, 'secret/shop/renamed')
    const { 'secret/shop/renamed': item } = await agent.initial()
    assert.deepEqual(item.secret.data, { user: 'YWRh' })
    await change(`${clusters}/prod`, {
      spec: { projects: [...projects, { project: 'games', namespaces: ['arcade'] }] },
    })
    await untilItems(agent, 'secret/shop/renamed', 'secret/arcade/foreign')
    await change(`${clusters}/prod`, { spec: { projects } })
    await untilItems(agent, 'secret/shop/renamed')
    for (const [name, project] of [
      ['keys', 'shop'],
      ['foreign', 'games'],
    ] as const)
      await must(stage.admin.ask('DELETE', `${projectSecrets(project)}/${name}`))
    await untilItems(agent)
  })

  test('follows labels of the cluster, for secrets and for roles', async () => {
    const selector = { matchExpressions: [{ key: 'region', operator: 'In', values: ['us'] }] }
    await deliver('moving', { clusters: { selector }, namespaces: ['shop'] })
    await must(
      stage.admin.ask('POST', teams, {
        metadata: { name: 'web' },
        spec: { clusterRoles: [{ name: 'view', clusters: { selector } }] },
      }),
    )
    await untilItems(agent)
    await change(`${clusters}/prod`, { metadata: { labels: { region: 'us' } } })
    await untilItems(agent, 'role/web/view', 'secret/shop/moving')
    const { metadata } = await must(stage.admin.ask('GET', `${teams}/web`))
    const { 'role/web/view': item } = await agent.initial()
    assert.deepEqual(item.role, { team: 'web', uid: metadata.uid, clusterRole: 'view' })
    await change(`${teams}/web`, { spec: { clusterRoles: null } })
    await change(`${clusters}/prod`, { metadata: { labels: { region: 'eu' } } })
    await untilItems(agent)
    await must(stage.admin.ask('DELETE', `${projectSecrets('shop')}/moving`))
    await must(stage.admin.ask('DELETE', `${teams}/web`))
  })

  test('the oldest of two secrets with the same place has it', async () => {
    const made = [
      await deliver('first', { namespaces: ['shop'], name: 'same' }),
      await deliver('second', { namespaces: ['shop'], name: 'same' }),
    ]
    const age = ({ metadata }: { metadata: { creationTimestamp: string; uid: string } }) =>
      `${metadata.creationTimestamp} ${metadata.uid}`
    const [oldest, other] = made.sort((one, two) => (age(one) < age(two) ? -1 : 1)).map(one => one.metadata.name)
    await untilItems(agent, 'secret/shop/same')
    const holder = async () => (await agent.initial())['secret/shop/same']?.secret.source.name
    await soon('the oldest has it', async () => (await holder()) === oldest)
    await must(stage.admin.ask('DELETE', `${projectSecrets('shop')}/${oldest}`))
    await soon('the other has it', async () => (await holder()) === other)
    await must(stage.admin.ask('DELETE', `${projectSecrets('shop')}/${other}`))
  })

  test('ends with an error when the cluster is disabled or deleted, or the key is revoked', async () => {
    const ends = async (make: () => Promise<unknown>) => {
      const seen: WatchEvent[] = []
      for await (const event of agent.watch(desiredOf('prod'))) {
        seen.push(event)
        if (event.type === 'BOOKMARK') await make()
      }
      return seen.at(-1)
    }
    const disabled = await ends(() => change(`${clusters}/prod`, { spec: { disabled: true } }))
    assert.deepEqual([disabled?.type, disabled?.object.code], ['ERROR', 403])
    await change(`${clusters}/prod`, { spec: { disabled: false } })
    const deleted = await ends(() => must(stage.admin.ask('DELETE', `${clusters}/prod`)))
    assert.ok(deleted?.type === 'BOOKMARK' || deleted?.object.code === 404)
    await refused(agent.ask('GET', desiredOf('prod')), 401)
  })

  test('a get lists the items without data', async () => {
    const other = await stage.connect('other', { projects })
    await must(
      stage.admin.ask('POST', projectSecrets('shop'), {
        metadata: { name: 'shown' },
        spec: { data, deliver: [{ clusters: { names: ['other'] }, namespaces: ['shop'] }] },
      }),
    )
    await untilItems(other, 'secret/shop/shown')
    const { status, body, text } = await other.ask('GET', desiredOf('other'))
    assert.equal(status, 200)
    assert.deepEqual([body.kind, body.items.length, text.includes('aHVudGVyMg')], ['ClusterDesired', 1, false])
  })

  test('bad input is rejected, with every problem', async () => {
    const bad = [
      { clusters: {} },
      { clusters: { names: ['prod'], selector: { matchLabels: { a: 'b' } } } },
      { clusters: { selector: {} } },
      { clusters: { names: ['prod'] }, namespaces: ['kube-system'] },
      { clusters: { names: ['prod'] }, name: 'Not A Name' },
      { clusters: { names: ['prod'] }, keys: ['a/b'] },
    ]
    const { status, body } = await stage.admin.ask('POST', projectSecrets('shop'), {
      metadata: { name: 'bad' },
      spec: { data, deliver: bad },
    })
    assert.equal(status, 422)
    const fields = body.details.causes.map((one: { field: string }) => one.field.replace(/\D*\[(\d)\].*/, '$1'))
    assert.deepEqual([...new Set(fields)], ['0', '1', '2', '3', '4', '5'])
    await refused(
      stage.admin.ask('POST', projectSecrets('shop'), {
        metadata: { name: 'bad' },
        spec: { data, deliver: [{ clusters: { names: ['prod'] }, namespace: 'shop' }] },
      }),
      422,
      /unknown field/,
    )
    for (const spec of [
      { gateway: { url: 'http://gateway.example.org' } },
      { gateway: { url: 'https://user:secret@gateway.example.org' } },
      { gateway: {} },
      { projects: [{ project: 'shop', namespaces: ['kube-system'] }] },
      {
        projects: [
          { project: 'a', namespaces: ['x'] },
          { project: 'b', namespaces: ['x'] },
        ],
      },
      { projects: [{ project: 'a', namespaces: [] }] },
    ])
      await refused(stage.admin.ask('POST', clusters, { metadata: { name: 'bad' }, spec }), 422)
    await refused(stage.admin.ask('POST', clusters, { metadata: { name: 'a.b' }, spec: {} }), 422)
  })
})
