// Permissions to send something to a connected cluster (D60, D68, D69).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, ours, type Person, refused, teams } from '../access/people.ts'
import {
  type Agent,
  agentOf,
  type ClusterStage,
  clusters,
  desiredOf,
  merge,
  openClusterStage,
  projectSecrets,
  rule,
  untilItems,
} from './stage.ts'

const projects = [{ project: 'shop', namespaces: ['shop', 'shop-jobs'] }]
const data = { password: 'aHVudGVyMg==' }

describe('power over connected clusters:', () => {
  let stage: ClusterStage
  let prod: Agent
  let dev: Agent
  let ada: Person
  let eve: Person
  before(async () => {
    stage = await openClusterStage()
    prod = await stage.connect('prod', { projects }, { tier: 'prod' })
    dev = await stage.connect('dev', { projects }, { tier: 'dev' })
    ada = await stage.invite('ada')
    eve = await stage.invite('eve')
    await stage.allow('ada', rule(['create', 'get', 'update', 'patch'], ['projectsecrets']))
    await stage.allow('ada', rule(['deliver'], ['clusters'], ['dev']))
    await stage.allow('eve', rule(['create', 'get', 'update', 'patch', 'list'], ['teams', 'clusters']))
  })
  after(() => stage.close())
  const create = (person: Person, name: string, spec: object, project = 'shop') =>
    person.ask('POST', projectSecrets(project), { metadata: { name }, spec })
  const change = (person: Person, path: string, body: object) => person.ask('PATCH', path, body, merge)

  test('a delivery needs the verb deliver on every cluster, of the caller and of the owner', async () => {
    const deliver = (...names: string[]) => [{ clusters: { names } }]
    await refused(
      create(ada, 'a', { data, deliver: deliver('prod') }),
      403,
      /verb deliver on clusters; missing on "prod"/,
    )
    await refused(create(ada, 'a', { data, deliver: deliver('dev', 'prod') }), 403)
    const selector = { matchExpressions: [{ key: 'tier', operator: 'Exists' }] }
    await refused(create(ada, 'a', { data, deliver: [{ clusters: { selector } }] }), 403, /"prod"/)
    await must(create(ada, 'a', { data, deliver: deliver('dev') }))
    await untilItems(dev, 'secret/shop-jobs/a', 'secret/shop/a')
    await untilItems(prod)
    await refused(change(ada, `${projectSecrets('shop')}/a`, { spec: { deliver: deliver('prod') } }), 403)
    await refused(
      create(stage.admin, 'b', { data, owner: { user: 'eve' }, deliver: deliver('dev') }),
      403,
      /the owner, user "eve"/,
    )
  })

  test('who may change a secret of somebody else cannot deliver it in their name', async () => {
    await must(create(ada, 'shared', { data, access: [{ verbs: ['get', 'update', 'patch'], users: ['mallory'] }] }))
    const mallory = await stage.invite('mallory')
    await stage.allow('mallory', rule(['deliver'], ['clusters'], ['dev']))
    const deliver = [{ clusters: { names: ['dev'] } }]
    await refused(change(mallory, `${projectSecrets('shop')}/shared`, { spec: { deliver } }), 403, /impersonate/)
  })

  test('when the owner loses the verb, nothing is delivered any more', async () => {
    const bob = await stage.invite('bob')
    await stage.allow('bob', rule(['create', 'get', 'update'], ['projectsecrets']))
    const binding = await must(
      stage.admin.ask('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
        metadata: { name: 'to-prod' },
        rules: [rule(['deliver'], ['clusters'], ['prod'])],
      }),
    ).then(() =>
      must(
        stage.admin.ask('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
          metadata: { name: 'to-prod' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'to-prod' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob' }],
        }),
      ),
    )
    const deliver = [{ clusters: { names: ['prod'] }, namespaces: ['shop'], name: 'db' }]
    await must(create(bob, 'lost', { data, deliver }))
    await untilItems(prod, 'secret/shop/db')
    await must(
      stage.admin.ask('DELETE', `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${binding.metadata.name}`),
    )
    await untilItems(prod)
  })

  test('a role of a connected cluster needs the verb bind on it, and grants nothing in this API', async () => {
    const clusterRoles = [{ name: 'platform-admin', clusters: { names: ['prod'] } }]
    await refused(
      eve.ask('POST', teams, { metadata: { name: 'ops' }, spec: { clusterRoles } }),
      403,
      /prod:platform-admin/,
    )
    await stage.allow('eve', rule(['bind'], ['clusters/clusterroles'], ['prod:platform-admin']))
    await must(eve.ask('POST', teams, { metadata: { name: 'ops' }, spec: { clusterRoles, users: ['eve'] } }))
    await untilItems(prod, 'role/ops/platform-admin')
    await refused(eve.ask('GET', `${ours}/users`), 403)
    const wide = [{ name: 'platform-admin', clusters: { selector: { matchLabels: { tier: 'dev' } } } }]
    await refused(change(eve, `${teams}/ops`, { spec: { clusterRoles: wide } }), 403, /dev:platform-admin/)
    await refused(
      change(eve, `${teams}/ops`, { spec: { clusterRoles: [{ name: 'platform-admin', cluster: 'prod' }] } }),
      422,
    )
  })

  test('adding members to a team, or a key of it, needs its roles in connected clusters', async () => {
    const clusterRoles = [{ name: 'edit', clusters: { names: ['prod'] } }]
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'admins' }, spec: { clusterRoles } }))
    await refused(change(eve, `${teams}/admins`, { spec: { users: ['eve'] } }), 403, /prod:edit/)
    await refused(eve.ask('POST', keys, { spec: { team: 'admins' } }), 403, /prod:edit/)
  })

  test('labels, projects and gateway of a Cluster need what begins to flow', async () => {
    const { admin } = stage
    const selector = { matchLabels: { tier: 'vault' } }
    await must(create(admin, 'vault', { data, deliver: [{ clusters: { selector } }] }))
    await must(
      admin.ask('POST', teams, {
        metadata: { name: 'vaulters' },
        spec: { clusterRoles: [{ name: 'view', clusters: { selector } }] },
      }),
    )
    const own = `${clusters}/dev`
    await refused(change(eve, own, { metadata: { labels: { tier: 'vault' } } }), 403, /dev:view/)
    await stage.allow('eve', rule(['bind'], ['clusters/clusterroles'], ['dev:view', 'fresh:view']))
    await refused(change(eve, own, { metadata: { labels: { tier: 'vault' } } }), 403, /p-shop/)
    await refused(
      eve.ask('POST', clusters, { metadata: { name: 'fresh', labels: { tier: 'vault' } }, spec: { projects } }),
      403,
    )
    await must(eve.ask('POST', clusters, { metadata: { name: 'fresh', labels: { tier: 'vault' } }, spec: {} }))
    await refused(change(eve, `${clusters}/fresh`, { spec: { projects } }), 403, /p-shop/)
    await refused(change(eve, own, { spec: { gateway: { url: 'https://eve.example.org' } } }), 403, /impersonate/)
    await must(change(eve, own, { spec: { displayName: 'Development' } }))
    await must(change(eve, own, { spec: { disabled: true } }))
    await refused(change(eve, own, { spec: { disabled: false } }), 403)
    await must(change(admin, own, { spec: { disabled: false } }))
  })

  test('a label that gives a second team a role of the cluster needs bind, too', async () => {
    const { admin } = stage
    const team = (name: string, role: string, selected: object) =>
      must(
        admin.ask('POST', teams, { metadata: { name }, spec: { clusterRoles: [{ name: role, clusters: selected }] } }),
      )
    const lab = await stage.connect('lab', {})
    await team('first', 'owner', { names: ['lab'] })
    await team('second', 'owner', { selector: { matchLabels: { tier: 'lab' } } })
    await untilItems(lab, 'role/first/owner')
    await refused(change(eve, `${clusters}/lab`, { metadata: { labels: { tier: 'lab' } } }), 403, /lab:owner/)
  })

  test('a label that sends further keys, or another type, of a secret that flows already needs get', async () => {
    const { admin } = stage
    const site = await stage.connect('site', { projects: [{ project: 'keys', namespaces: ['keys'] }] })
    const labelled = { selector: { matchLabels: { site: 'open' } } }
    const named = { clusters: { names: ['site'] }, keys: ['user'] }
    const both = { user: 'YQ==', ...data }
    const label = (person: Person) => change(person, `${clusters}/site`, { metadata: { labels: { site: 'open' } } })
    await must(create(admin, 'wider', { data: both, deliver: [{ clusters: labelled }, named] }, 'keys'))
    await untilItems(site, 'secret/keys/wider')
    await refused(label(eve), 403, /p-keys/)
    await must(admin.ask('DELETE', `${projectSecrets('keys')}/wider`))
    const typed = { clusters: labelled, keys: ['user'], type: 'kubernetes.io/basic-auth' }
    await must(create(admin, 'typed', { data: both, deliver: [typed, named] }, 'keys'))
    await refused(label(eve), 403, /p-keys/)
    await must(admin.ask('DELETE', `${projectSecrets('keys')}/typed`))
    // The first entry counts, so this label changes nothing.
    await must(create(admin, 'same', { data: both, deliver: [named, { clusters: labelled }] }, 'keys'))
    await must(label(eve))
  })

  test('a role in a cluster that is gone is not a role in the next one of its name', async () => {
    const { admin } = stage
    const spec = (users: readonly string[]) => ({
      users,
      clusterRoles: [{ name: 'edit', clusters: { names: ['again'] } }],
    })
    await stage.connect('again')
    await must(admin.ask('POST', teams, { metadata: { name: 'before' }, spec: spec(['eve']) }))
    await must(admin.ask('DELETE', `${clusters}/again`))
    const again = await stage.connect('again')
    await must(admin.ask('POST', teams, { metadata: { name: 'after' }, spec: spec([]) }))
    await untilItems(again, 'role/after/edit')
    await refused(change(eve, `${teams}/after`, { spec: { users: ['eve'] } }), 403, /again:edit/)
    await must(change(eve, `${teams}/before`, { spec: { users: ['eve', 'bob'] } }))
  })

  test('a cluster that is created again under its name gets nothing that was meant for the old one', async () => {
    const old = await stage.connect('old', { projects })
    await must(
      create(stage.admin, 'pinned', { data, deliver: [{ clusters: { names: ['old'] }, namespaces: ['shop'] }] }),
    )
    await untilItems(old, 'secret/shop/pinned')
    await must(stage.admin.ask('DELETE', `${clusters}/old`))
    await refused(old.ask('GET', desiredOf('old')), 401)
    const again = await stage.connect('old', { projects })
    await untilItems(again)
    await must(change(ada, `${projectSecrets('shop')}/pinned`, { spec: { description: 'touched' } }))
    await untilItems(again)
    await must(
      change(stage.admin, `${projectSecrets('shop')}/pinned`, { spec: { description: 'by an administrator' } }),
    )
    await untilItems(again, 'secret/shop/pinned')
  })

  test('an agent reads only what is delivered to its own cluster, and changes only its status', async () => {
    await refused(dev.ask('GET', desiredOf('prod')), 403)
    await refused(dev.ask('GET', `${desiredOf('prod')}?watch=true`), 403)
    await refused(dev.ask('GET', `${projectSecrets('shop')}/a`), 403)
    await refused(dev.ask('GET', `${clusters}/dev`), 403)
    assert.deepEqual((await must(dev.ask('GET', clusters))).items, [])
    await refused(change(dev, `${clusters}/dev`, { metadata: { labels: { tier: 'prod' } } }), 403)
    await refused(change(dev, `${clusters}/prod/status`, { status: { agentVersion: '1' } }), 403)
    await refused(dev.ask('POST', keys, { spec: { subject: dev.name } }), 403)
    // Nobody would revoke the token after the cluster was deleted.
    await refused(dev.ask('POST', `${ours}/directclusterendpointtokens`, { spec: { ttl: 60 } }), 403, /agent/)
    await must(change(dev, `${clusters}/dev/status`, { status: { agentVersion: '1', kubernetesVersion: 'v1.34.0' } }))
    const all = { spec: { disabled: true }, metadata: { labels: { a: 'b' } }, status: {} }
    await must(change(dev, `${clusters}/dev/status`, all))
    const read = await must(stage.admin.ask('GET', `${clusters}/dev`))
    assert.deepEqual([read.spec.disabled, read.metadata.labels.a], [false, undefined])
  })

  test('a key with the scope role agent of somebody else does not read what is delivered', async () => {
    const key = await must(
      stage.admin.ask('POST', keys, { spec: { user: 'admin', scope: { roles: [{ role: 'agent' }] } } }),
    )
    const gateway = stage.person('gateway', key.spec.key)
    await refused(gateway.ask('GET', desiredOf('prod')), 403)
    await refused(gateway.ask('GET', `${desiredOf('prod')}?watch=true`), 403)
  })

  test('keys of agents: only with the scope of an agent, and only by administrators', async () => {
    const subject = dev.name
    await refused(stage.admin.ask('POST', keys, { spec: { subject } }), 422, /for an agent/)
    const spec = { subject, scope: { roles: [{ role: 'agent' }] } }
    await refused(eve.ask('POST', keys, { spec }), 403)
    await refused(stage.admin.ask('POST', keys, { spec: { subject: 'platform:cluster:dev' } }), 422, /reserved/)
    assert.ok(await agentOf(stage, 'dev', dev.uid))
  })

  test('a disabled cluster gets nothing', async () => {
    const off = await stage.connect('off', { projects })
    await must(change(stage.admin, `${clusters}/off`, { spec: { disabled: true } }))
    await refused(off.ask('GET', desiredOf('off')), 403, /disabled/)
    await refused(off.ask('GET', `${desiredOf('off')}?watch=true`), 403, /disabled/)
  })
})
