// Findings of the seventh security review: the keys of a team and its members, teams without members, keys that expire.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, openPeople, ours, type People, rbac, secrets } from './direct-people.ts'

const keysOfCrew = 'platform:team:crew'
const everything = { verbs: ['*'], subresources: ['*'] }
const apply = 'application/apply-patch+yaml'

const many = (count: number, prefix: string) => Array.from({ length: count }, (_, at) => `${prefix}${at}`)
const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}

describe('a grant to the keys of a team is not one to its members', () => {
  const open = async (t: { after(close: () => Promise<void>): void }, ...verbs: string[]) => {
    const server = await openPeople()
    t.after(server.close)
    const mallory = await server.invite('mallory')
    await server.admin('POST', `${ours}/teams`, { metadata: { name: 'crew' }, spec: { users: ['mallory'] } })
    if (verbs.length)
      await server.allow('mallory', { verbs, apiGroups: [group], resources: ['sharedsecrets', 'teams'] })
    return { server, mallory }
  }
  const make = (server: People, spec: object) =>
    server.admin('POST', secrets, { metadata: { name: 'app' }, spec: { data: { pw: 'dG9wIQ==' }, ...spec } })
  const url = `${secrets}/app`

  test('the owner', async t => {
    const { server, mallory } = await open(t, 'patch')
    await make(server, { owner: { user: keysOfCrew } })
    assert.equal((await mallory.ask('GET', url)).code, 403)
    assert.equal((await mallory.ask('PATCH', url, { spec: { owner: { user: null, team: 'crew' } } })).code, 403)
    assert.equal((await mallory.ask('GET', url)).code, 403)
  })

  test('an access entry', async t => {
    const { server, mallory } = await open(t)
    const patching = { verbs: ['patch'], users: ['mallory'] }
    await make(server, { access: [{ ...everything, users: [keysOfCrew] }, patching] })
    const shared = { spec: { access: [{ ...everything, teams: ['crew'] }] } }
    assert.equal((await mallory.ask('PATCH', url, shared)).code, 403)
    assert.equal((await mallory.ask('GET', url)).code, 403)
  })

  test('an access entry of an object that the keys own', async t => {
    const { server, mallory } = await open(t, 'get', 'update', 'patch')
    await make(server, { owner: { user: keysOfCrew } })
    const config = {
      apiVersion: 'management.platform.sh/v1',
      kind: 'SharedSecret',
      metadata: { name: 'app' },
      spec: { access: [{ ...everything, teams: ['crew'] }] },
    }
    const { code } = await mallory.ask('PATCH', `${url}?fieldManager=m&force=true`, config, apply)
    assert.equal(code, 403)
    assert.equal((await mallory.ask('GET', `${url}/history`)).code, 403)
  })

  test('the owner of a team', async t => {
    const { server, mallory } = await open(t, 'get', 'update')
    const boss = `${ours}/teams/boss`
    await server.admin('POST', `${ours}/teams`, { metadata: { name: 'boss' }, spec: { owner: { user: keysOfCrew } } })
    const stored = (await mallory.ask('GET', boss)).body as unknown as { spec: object }
    assert.equal(
      (await mallory.ask('PUT', boss, { ...stored, spec: { ...stored.spec, owner: { team: 'crew' } } })).code,
      403,
    )
    assert.equal((await mallory.ask('DELETE', boss)).code, 403)
  })

  test('a scoped key does not turn one into the other', async t => {
    const { server, mallory } = await open(t)
    await server.allow('lea', { verbs: ['*'], apiGroups: [group], resources: ['sharedsecrets', 'sharedsecrets/*'] })
    const rules = [{ verbs: ['patch'], resources: [{ group, resources: ['sharedsecrets'] }] }]
    const { spec } = await server.admin('POST', `${ours}/ownedaccesskeys`, { spec: { user: 'lea', scope: { rules } } })
    await make(server, { access: [{ verbs: ['get'], users: [keysOfCrew] }] })
    const shared = { spec: { access: [{ verbs: ['get'], teams: ['crew'] }] } }
    assert.equal((await server.person(spec.key)('PATCH', url, shared)).code, 403)
    assert.equal((await mallory.ask('GET', url)).code, 403)
  })

  test('a grant to the team includes its keys', async t => {
    const { server, mallory } = await open(t, 'patch')
    await make(server, { access: [{ verbs: ['get'], teams: ['crew'] }] })
    const shared = { spec: { access: [{ verbs: ['get'], users: [keysOfCrew] }] } }
    assert.equal((await mallory.ask('PATCH', url, shared)).code, 200)
  })
})

test('the username of a deleted team has none of its permissions, also after a new team has the name', async t => {
  const server = await openPeople()
  t.after(server.close)
  const subject = { kind: 'User', name: 'platform:team:lone' }
  await server.admin('POST', secrets, { metadata: { name: 'app' }, spec: { data: { pw: 'dG9wIQ==' } } })
  await server.admin('POST', `${ours}/teams`, { metadata: { name: 'lone' } })
  const rule = { verbs: ['get'], apiGroups: [group], resources: ['sharedsecrets'] }
  await server.admin('POST', `${rbac}/clusterroles`, { metadata: { name: 'reader' }, rules: [rule] })
  const roleRef = { kind: 'ClusterRole', name: 'reader' }
  await server.admin('POST', `${rbac}/clusterrolebindings`, {
    metadata: { name: 'lone' },
    roleRef,
    subjects: [subject],
  })
  const review = async () => {
    const resourceAttributes = { verb: 'get', group, resource: 'sharedsecrets', namespace: 'default', name: 'app' }
    const url = '/kubernetes/management/apis/authorization.k8s.io/v1/subjectaccessreviews'
    const body = { spec: { user: subject.name, resourceAttributes } }
    const { status } = (await server.admin('POST', url, body)) as unknown as { status: { allowed: boolean } }
    return status.allowed
  }
  assert.equal(await review(), true)
  await server.admin('DELETE', `${ours}/teams/lone`)
  assert.equal(await review(), false)
  await server.admin('POST', `${ours}/teams`, { metadata: { name: 'lone' } })
  assert.equal(await review(), false)
})

describe('a credential that ends while a long check runs', () => {
  /** Starts a RoleBinding whose check takes many turns of the event loop. */
  async function bindSlowly(server: People, key: string, user: { readonly kind: string; readonly name: string }) {
    const rule = (verbs: string[]) => ({
      verbs,
      apiGroups: [group],
      resources: ['sharedsecrets'],
      resourceNames: many(900, 'n'),
    })
    const bindings = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['rolebindings'] }
    const rules = [{ verbs: ['create'], ...bindings }, rule(many(50, 'one')), rule(many(50, 'other'))]
    await server.admin('POST', `${rbac}/clusterroles`, { metadata: { name: 'parts' }, rules })
    const roleRef = { kind: 'ClusterRole', name: 'parts' }
    await server.admin('POST', `${rbac}/clusterrolebindings`, {
      metadata: { name: 'parts' },
      roleRef,
      subjects: [user],
    })
    const mixed = { metadata: { name: 'mixed' }, rules: [rule([...many(50, 'one'), ...many(50, 'other')])] }
    await server.admin('POST', `${rbac}/namespaces/default/roles`, mixed)
    const running = server.person(key)('POST', `${rbac}/namespaces/default/rolebindings`, {
      metadata: { name: 'late' },
      roleRef: { kind: 'Role', name: 'mixed' },
      subjects: [{ kind: 'User', name: 'other' }],
    })
    await turns(3)
    return { running }
  }

  for (const [how, finalizers, query] of [
    ['with a grace period', [], '?gracePeriodSeconds=60'],
    ['with a finalizer', ['example.com/wait'], ''],
    ['at once', [], ''],
  ] as const)
    test(`a team without members is deleted ${how}`, async t => {
      const server = await openPeople()
      t.after(server.close)
      await server.admin('POST', `${ours}/teams`, { metadata: { name: 'lone', finalizers } })
      const { spec } = await server.admin('POST', `${ours}/ownedaccesskeys`, { spec: { team: 'lone' } })
      const { running } = await bindSlowly(server, spec.key, { kind: 'Group', name: 'platform:team:lone' })
      await server.admin('DELETE', `${ours}/teams/lone${query}`)
      assert.notEqual((await running).code, 201)
    })

  test('a key expires', async t => {
    const server = await openPeople()
    t.after(server.close)
    const { spec } = await server.admin('POST', `${ours}/ownedaccesskeys`, { spec: { user: 'mallory', ttl: 600 } })
    const { running } = await bindSlowly(server, spec.key, { kind: 'User', name: 'mallory' })
    server.clock.offset += 601_000
    assert.equal((await running).code, 401)
  })
})

test('changes of unrelated objects do not keep a long check from its end', async t => {
  const server = await openPeople()
  t.after(server.close)
  const [mallory, manager] = [await server.invite('mallory'), await server.invite('manager')]
  await server.allow('mallory', { verbs: ['create'], apiGroups: [group], resources: ['sharedsecrets'] })
  await server.admin('POST', `${ours}/teams`, { metadata: { name: 'crew' }, spec: { owner: { user: 'manager' } } })
  await server.allow('manager', { verbs: ['create'], apiGroups: [group], resources: ['sharedsecrets'] })
  const access = [{ verbs: many(100, 'verb'), subresources: many(199, 'sub'), teams: ['crew'] }]
  for (const name of many(9, 'large-')) await manager.ask('POST', secrets, { metadata: { name }, spec: { access } })
  await mallory.ask('POST', secrets, { metadata: { name: 'own' } })
  let isRunning = true
  const running = manager.ask('PATCH', `${ours}/teams/crew`, { spec: { users: ['someone'] } }).finally(() => {
    isRunning = false
  })
  let changes = 0
  while (isRunning) {
    await turns(1)
    const entries = [{ verbs: ['get'], users: [`user-${changes++}`] }]
    assert.equal((await mallory.ask('PATCH', `${secrets}/own`, { spec: { access: entries } })).code, 200)
  }
  assert.equal((await running).code, 200)
  assert.ok(changes > 2, `${changes} changes`)
})
