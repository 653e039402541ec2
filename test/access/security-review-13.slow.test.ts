// Security review 13: connected clusters. Roles and secrets that reach a cluster without permission, or stay after it ended (D60, D61, D68, D69).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  type Agent,
  type ClusterStage,
  clusters,
  desiredOf,
  merge,
  openClusterStage,
  projectSecrets,
  rule,
  untilItems,
} from '../clusters/stage.ts'
import { openSystem, type System } from '../prove/cost/system.ts'
import { keys, must, ours, type Person, refused, soon, teams } from './people.ts'

const projects = [{ project: 'shop', namespaces: ['shop', 'shop-jobs'] }]
const data = { password: 'aHVudGVyMg==' }
const withLabel = (key: string) => ({ selector: { matchLabels: { [key]: 'y' } } })
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))

describe('security review 13: roles of connected clusters', () => {
  let stage: ClusterStage
  let dev: Agent
  let admin: Person
  /** May write teams and clusters, and has `bind` on nothing. */
  let eve: Person
  before(async () => {
    stage = await openClusterStage()
    ;({ admin } = stage)
    dev = await stage.connect('dev', { projects })
    eve = await stage.invite('eve')
    await stage.allow('eve', rule(['create', 'get', 'update', 'patch', 'list'], ['teams', 'clusters']))
  })
  after(() => stage.close())

  const createTeam = (person: Person, name: string, spec: object) =>
    person.ask('POST', teams, { metadata: { name }, spec })
  const label = (person: Person, cluster: string, key: string) =>
    person.ask('PATCH', `${clusters}/${cluster}`, { metadata: { labels: { [key]: 'y' } } }, merge)

  test('R1 a label that gives a role to another team needs bind, also if a team has the same role there', async () => {
    await must(createTeam(admin, 'devs', { clusterRoles: [{ name: 'edit', clusters: { names: ['dev'] } }] }))
    await must(createTeam(admin, 'others', { clusterRoles: [{ name: 'edit', clusters: withLabel('other') }] }))
    await untilItems(dev, 'role/devs/edit')
    await refused(label(eve, 'dev', 'other'), 403, /dev:edit/)
  })

  test('R2 a selector that selects no cluster yet does not get a role without bind when others label a cluster', async () => {
    const lab = await stage.connect('lab')
    const planted = await createTeam(eve, 'planted', {
      users: ['eve'],
      clusterRoles: [{ name: 'admin', clusters: withLabel('later') }],
    })
    if (planted.status === 403) return
    const labeled = await label(admin, 'lab', 'later')
    // The next change of the team shows that the server has seen the label.
    await must(createTeam(admin, 'witness', { clusterRoles: [{ name: 'view', clusters: { names: ['lab'] } }] }))
    await soon('the role of the witness', async () => 'role/witness/view' in (await lab.initial()))
    assert.ok(!('role/planted/admin' in (await lab.initial())), `the label: ${labeled.status}, without a warning`)
  })

  test('R3 a team and a label that are written at the same time pass no role without bind', async () => {
    // Eve may get these secrets. There are many, so that the check of the label takes a while.
    await stage.connect('wide', { projects: [{ project: 'big', namespaces: many(250, at => `n${at}`) }] })
    await stage.allow('eve', rule(['get'], ['projectsecrets']))
    const deliver = [{ clusters: withLabel('race') }]
    for (let at = 0; at < 80; at++)
      await must(admin.ask('POST', projectSecrets('big'), { metadata: { name: `s${at}` }, spec: { data, deliver } }))
    const clusterRoles = [{ name: 'cluster-admin', clusters: withLabel('race') }]
    await must(createTeam(eve, 'racer', {}))
    const change = (roles: readonly object[]) =>
      eve.ask('PATCH', `${teams}/racer`, { spec: { clusterRoles: roles } }, merge)
    // Both are checked at the same time in one of these rounds.
    for (const round of many(20, at => at)) {
      const labeling = label(eve, 'wide', 'race')
      for (let requests = 0; requests < round; requests++) await eve.ask('GET', `${teams}/racer`)
      const given = await change(clusterRoles)
      const labeled = await labeling
      assert.ok(given.status !== 200 || labeled.status !== 200, 'the team has cluster-admin in the cluster')
      await must(change([]))
      await must(eve.ask('PATCH', `${clusters}/wide`, { metadata: { labels: { race: null } } }, merge))
    }
  })

  test('R4 a role in a cluster that was deleted is not held in the cluster that has its name now', async () => {
    const clusterRoles = [{ name: 'admin', clusters: { names: ['old'] } }]
    await stage.connect('old')
    await must(createTeam(admin, 'stale', { users: ['eve'], clusterRoles }))
    await must(admin.ask('DELETE', `${clusters}/old`))
    const again = await stage.connect('old')
    await must(createTeam(admin, 'fresh', { clusterRoles }))
    await untilItems(again, 'role/fresh/admin')
    await refused(eve.ask('PATCH', `${teams}/fresh`, { spec: { users: ['eve'] } }, merge), 403, /old:admin/)
  })

  test('R5 names of roles that Kubernetes does not allow are invalid', async () => {
    for (const name of ['view/x', '..', 'a%2fb'])
      await refused(
        createTeam(admin, 'slash', { clusterRoles: [{ name, clusters: { names: ['dev'] } }] }),
        422,
        /spec.clusterRoles\[0\].name/,
      )
  })
})

describe('security review 13: secrets for connected clusters', () => {
  let stage: ClusterStage
  let dev: Agent
  let admin: Person
  before(async () => {
    stage = await openClusterStage()
    ;({ admin } = stage)
    dev = await stage.connect('dev', { projects })
  })
  after(() => stage.close())

  const toDev = [{ clusters: { names: ['dev'] }, namespaces: ['shop'] }]
  const create = (person: Person, name: string, spec: object) =>
    person.ask('POST', projectSecrets('shop'), { metadata: { name }, spec: { data, ...spec } })

  test('S1 a team that is created again does not keep the deliveries of the earlier one', async () => {
    await must(admin.ask('POST', teams, { metadata: { name: 'shipper' } }))
    await stage.allow('platform:team:shipper', rule(['deliver'], ['clusters']))
    await must(create(admin, 'of-team', { owner: { team: 'shipper' }, deliver: toDev }))
    await untilItems(dev, 'secret/shop/of-team')
    await must(admin.ask('DELETE', `${teams}/shipper`))
    await must(admin.ask('POST', teams, { metadata: { name: 'shipper' } }))
    await untilItems(dev)
  })

  test('S2 a disabled user delivers nothing any more', async () => {
    const bob = await stage.invite('bob')
    await stage.allow('bob', rule(['create', 'get'], ['projectsecrets']), rule(['deliver'], ['clusters']))
    await must(create(bob, 'of-bob', { deliver: toDev }))
    await soon('the delivery', async () => 'secret/shop/of-bob' in (await dev.initial()))
    await must(admin.ask('POST', `${ours}/users`, { metadata: { name: 'bob' }, spec: { disabled: true } }))
    await refused(bob.ask('GET', `${projectSecrets('shop')}/of-bob`), 401)
    await soon('no delivery', async () => !('secret/shop/of-bob' in (await dev.initial())))
  })

  test('S3 a cluster that is created again under its name never sees the items of the earlier one', async () => {
    const namespaces = many(250, at => `n${at}`)
    const spec = { projects: [{ project: 'big', namespaces }] }
    await stage.connect('twice', spec)
    const make = (at: number) =>
      admin.ask('POST', projectSecrets('big'), {
        metadata: { name: `s${at}` },
        spec: { data, deliver: [{ clusters: { names: ['twice'] } }] },
      })
    for (let at = 0; at < 160; at += 8) await Promise.all(many(8, one => must(make(at + one))))
    await must(admin.ask('DELETE', `${clusters}/twice`))
    const again = await stage.connect('twice', spec)
    const values: unknown[] = []
    for await (const { type, object } of again.watch(desiredOf('twice'))) {
      if (type === 'BOOKMARK' || type === 'ERROR') break
      if (type === 'ADDED') values.push(object.secret.data)
    }
    assert.equal(values.length, 0, 'the agent of the new cluster has read values of secrets for the old one')
  })

  test('S4 the report of an agent changes only conditions of secrets that its cluster gets', async () => {
    const prod = await stage.connect('prod', { projects })
    const deliver = [{ clusters: { names: ['prod'] }, namespaces: ['shop'] }]
    const { metadata } = await must(create(admin, 'to-prod', { deliver }))
    await soon('the delivery', async () => 'secret/shop/to-prod' in (await prod.initial()))
    const problem = { secret: 'p-shop/to-prod', uid: metadata.uid, namespace: 'a', name: 'b', reason: 'Forged' }
    const report = (agent: Agent, status: object) =>
      must(agent.ask('PATCH', `${clusters}/${agent.cluster}/status`, { status }, merge))
    const lastContact = new Date().toISOString()
    await report(dev, { lastContact, problems: [{ ...problem, message: 'forged by dev' }] })
    await report(prod, { lastContact, desiredVersion: String(Number.MAX_SAFE_INTEGER) })
    const conditionOf = async () => {
      const { status } = await must(admin.ask('GET', `${projectSecrets('shop')}/to-prod`))
      return status.conditions.find(({ type }: { type: string }) => type === 'Delivered')
    }
    await soon('a condition', async () => (await conditionOf()).status !== 'Unknown')
    const { status, reason } = await conditionOf()
    assert.deepEqual({ status, reason }, { status: 'True', reason: 'Delivered' })
  })

  test('S5 a user who may be the agent of a cluster gets the key, and no more than the user has', async () => {
    const kim = await stage.invite('kim')
    await stage.allow(
      'kim',
      rule(['get', 'watch'], ['clusters/desired'], ['dev']),
      rule(['update', 'patch'], ['clusters/status'], ['dev']),
    )
    const spec = { subject: dev.name, scope: { roles: [{ role: 'agent' }] } }
    const created = await kim.ask('POST', keys, { spec })
    if (created.status === 403) return
    // Without the secret, the key is useless, and `platform connect cluster` would write a placeholder to the cluster.
    const { spec: shown } = await must(Promise.resolve(created))
    assert.ok(shown?.key, 'the response does not contain the key')
    const agent = stage.person('agent', shown.key)
    await refused(agent.ask('GET', `${ours}/tokenrevocations`), 403)
  })
})

describe('security review 13: cost of deliveries', () => {
  let system: System
  before(async () => {
    system = await openSystem()
  })
  after(() => system.close())

  const prefix = '/kubernetes/management'
  const create = async (path: string, body: object) => {
    const { code, text } = await system.ask({
      method: 'POST',
      url: `${prefix}${path}`,
      headers: { authorization: `Bearer ${system.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    assert.equal(code, 201, text)
  }

  /** Microseconds of this process. */
  const cpuOf = async (work: () => Promise<void>) => {
    const start = process.cpuUsage()
    await work()
    const { user, system: kernel } = process.cpuUsage(start)
    return user + kernel
  }

  test('C1 roles in connected clusters that select nothing do not slow down writes of other teams', async () => {
    for (const at of many(8, one => one)) await create(clusters, { metadata: { name: `c${at}` } })
    const costOf = (prefixed: string) =>
      cpuOf(async () => {
        for (const at of many(20, one => one))
          await create(teams, { metadata: { name: `${prefixed}-${at}` }, spec: { users: ['ada'] } })
      })
    /** Of several measurements, because a collection of garbage can fall into one. */
    const leastCostOf = async (prefixed: string) => {
      let least = Number.POSITIVE_INFINITY
      for (const at of many(5, one => one)) least = Math.min(least, await costOf(`${prefixed}-${at}`))
      return least
    }
    await costOf('warm')
    const few = await leastCostOf('few')
    const absent = many(9, at => ({ key: `k${at}`, operator: 'DoesNotExist' }))
    const matchExpressions = [...absent, { key: 'absent', operator: 'Exists' }]
    const clusterRoles = many(20, at => ({ name: `r${at}`, clusters: { selector: { matchExpressions } } }))
    for (const at of many(10, one => one))
      await create(teams, { metadata: { name: `heavy-${at}` }, spec: { clusterRoles } })
    const lots = await leastCostOf('lots')
    assert.ok(lots < 4 * few, `twenty teams cost ${few} µs, and ${lots} µs after teams with many selectors`)
  })

  test('C2 the cost of a delivery does not grow with the secrets that want the same place', async () => {
    const namespaces = many(50, at => `n${at}`)
    for (const name of ['a', 'b', 'c', 'd'])
      await create(clusters, {
        metadata: { name, labels: { many: 'y' } },
        spec: { projects: [{ project: 'big', namespaces }] },
      })
    const deliver = [{ clusters: withLabel('many'), name: 'same' }]
    const costOf = (first: number, end: number) =>
      cpuOf(async () => {
        for (let at = first; at < end; at++)
          await create(projectSecrets('big'), { metadata: { name: `s${at}` }, spec: { data, deliver } })
      })
    await costOf(0, 20)
    const few = await costOf(20, 50)
    await costOf(50, 170)
    const lots = await costOf(170, 200)
    assert.ok(lots < 2.5 * few, `thirty writes cost ${few} µs after 20 secrets, and ${lots} µs after 170`)
  })
})
