// The agent of a connected cluster: what the management API wants is in the cluster, whatever others do there.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import type { Json } from '../../src/api/object.ts'
import { ClusterRole, ClusterRoleBinding } from '../../src/kinds/rbac.ts'
import { Secret } from '../../src/reconcile/kubernetes-kinds.ts'
import { until } from '../support/cluster.ts'
import { type AgentStage, base64, openAgentStage, roleFor, secretFor } from './agent-fixture.ts'

const at = { namespace: 'shop', name: 'token' }
const bindingAt = { namespace: '', name: 'platform:web:view' }

describe('the agent', () => {
  let stage: AgentStage
  beforeEach(async () => {
    stage = await openAgentStage()
  })
  afterEach(() => stage.close())
  const gone = (name: string) =>
    until(`${name} is gone`, async () => (await stage.cluster.secret('shop', name)) === undefined)
  const patch = (body: object) => stage.cluster.people.patch(Secret, at, { type: 'merge', body: body as Json })

  test('delivers a Secret with its marks, changes it, and deletes it', async () => {
    const { service, delivered, settled, noProblems } = stage
    stage.start()
    service.put('a', secretFor())
    const { metadata, type } = await delivered('shop', 'token', 'first')
    assert.equal(type, 'Opaque')
    assert.deepEqual(metadata.labels, { 'platform.sh/managed-by': 'agent', 'platform.sh/cluster-uid': service.uid })
    assert.equal(metadata.annotations?.['platform.sh/source'], 'p-shop/token')
    assert.equal(metadata.annotations?.['platform.sh/source-uid'], 'uid-of-token')
    service.put('a', secretFor({ value: 'second' }))
    await delivered('shop', 'token', 'second')
    await settled()
    await noProblems()
    const report = service.reports.at(-1)
    assert.equal(report?.agentVersion, 'test')
    assert.ok(report?.kubernetesVersion)
    assert.ok(Math.abs(Date.parse(report?.lastContact ?? '') - Date.now()) < 60_000)
    service.remove('a')
    await gone('token')
    await settled()
  })

  test('binds the cluster role of a team, with the prefix of groups, and unbinds it', async () => {
    const { cluster, service, settled } = stage
    await cluster.createRole('view')
    service.put('r', roleFor())
    stage.start({ groupPrefix: 'corp:' })
    await settled()
    const binding = await cluster.binding(bindingAt.name)
    assert.equal(binding?.roleRef.name, 'view')
    assert.deepEqual(
      binding?.subjects.map(({ name }) => name),
      ['corp:platform:team:web'],
    )
    service.remove('r')
    await until('the binding is gone', async () => (await cluster.binding(bindingAt.name)) === undefined)
  })

  test('restores what others edit or delete, and keeps their labels', async () => {
    const { cluster, service, delivered } = stage
    await cluster.createRole('view')
    service.put('a', secretFor())
    service.put('r', roleFor())
    stage.start()
    await delivered('shop', 'token', 'first')
    await patch({ metadata: { labels: { mine: 'yes' } }, data: { token: base64('edited'), more: base64('x') } })
    const restored = await delivered('shop', 'token', 'first')
    assert.deepEqual(Object.keys(restored.data ?? {}), ['token'])
    assert.equal(restored.metadata.labels?.['mine'], 'yes')
    await cluster.people.delete(Secret, at)
    await delivered('shop', 'token', 'first')
    await until('the binding exists', () => cluster.binding(bindingAt.name))
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'mallory' }]
    await cluster.people.patch(ClusterRoleBinding, bindingAt, { type: 'merge', body: { subjects } })
    await until('the subjects are restored', async () => {
      const binding = await cluster.binding(bindingAt.name)
      return binding?.subjects[0]?.name === 'platform:team:web'
    })
    await cluster.people.delete(ClusterRoleBinding, bindingAt)
    await until('the binding is restored', () => cluster.binding(bindingAt.name))
  })

  test('replaces a Secret whose type changes, or that somebody made immutable', async () => {
    const { cluster, service, delivered } = stage
    service.put('a', secretFor())
    stage.start()
    const before = await delivered('shop', 'token', 'first')
    const data = { username: base64('ada'), token: base64('first') }
    service.put('a', secretFor({ type: 'kubernetes.io/basic-auth', data }))
    const changed = async () => {
      const found = await cluster.secret('shop', 'token')
      return found?.type === 'kubernetes.io/basic-auth' && found
    }
    const after = await until('the type has changed', changed)
    assert.notEqual(after.metadata.uid, before.metadata.uid)
    await patch({ immutable: true })
    const again = await until('it is mutable again', async () => {
      const found = await cluster.secret('shop', 'token')
      return found && !found.immutable && found
    })
    assert.notEqual(again.metadata.uid, after.metadata.uid)
  })

  test('never changes a Secret or a binding of somebody else, nor one whose labels are removed', async () => {
    const { cluster, service, problem, delivered, noProblems } = stage
    const foreign = { 'platform.sh/managed-by': 'agent', 'platform.sh/cluster-uid': 'of-another-cluster' }
    await cluster.createSecret({ metadata: { ...at, labels: foreign }, data: { token: base64('theirs') } })
    await cluster.createRole('view')
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }
    await cluster.people.create(ClusterRoleBinding, '', { metadata: { name: bindingAt.name }, roleRef, subjects: [] })
    service.put('a', secretFor())
    service.put('r', roleFor())
    stage.start()
    const { reason: _, message, ...about } = await problem('SecretExists')
    assert.deepEqual(about, { secret: 'p-shop/token', uid: 'uid-of-token', namespace: 'shop', name: 'token' })
    assert.match(message ?? '', /does not belong to this agent/)
    assert.equal((await problem('BindingExists'))['team'], 'web')
    assert.deepEqual(cluster.writes, [])
    service.remove('a')
    service.remove('r')
    await noProblems()
    assert.equal((await cluster.secret('shop', 'token'))?.data?.['token'], base64('theirs'))
    service.put('b', secretFor({ name: 'other' }))
    await delivered('shop', 'other', 'first')
    const labels = { 'platform.sh/managed-by': null }
    await cluster.people.patch(Secret, { ...at, name: 'other' }, { type: 'merge', body: { metadata: { labels } } })
    await problem('SecretExists')
    service.remove('b')
    await noProblems()
    assert.ok(await cluster.secret('shop', 'other'))
    await cluster.people.delete(Secret, at)
    service.put('a', secretFor())
    await delivered('shop', 'token', 'first')
  })

  test('of two deliveries to one name, the first stays, and the other one is a problem', async () => {
    const { service, delivered, problem, cluster, noProblems } = stage
    service.put('m', secretFor())
    stage.start()
    await delivered('shop', 'token', 'first')
    const source = { namespace: 'p-shop', name: 'another', uid: 'uid-of-another' }
    service.put('a', secretFor({ source, value: 'second' }))
    assert.equal((await problem('SecretExists'))['secret'], 'p-shop/another')
    assert.equal((await cluster.secret('shop', 'token'))?.data?.['token'], base64('first'))
    service.remove('m')
    await delivered('shop', 'token', 'second')
    await noProblems()
  })

  test('delivers no types and to no namespaces that could give somebody the cluster', async () => {
    const { cluster, service, problem } = stage
    cluster.namespaces.set('kube-system', 'Active')
    service.put('a', secretFor({ type: 'kubernetes.io/service-account-token' }))
    stage.start()
    assert.match((await problem('NotAllowed'))['message'] ?? '', /service-account-token/)
    service.put('a', secretFor({ namespace: 'kube-system' }))
    await until('the namespace is reported', async () => (await problem('NotAllowed'))['namespace'] === 'kube-system')
    assert.deepEqual(cluster.writes, [])
  })

  test('a missing namespace is a problem until it exists, and a terminating one until it is new', async () => {
    const { cluster, service, problem, delivered, noProblems } = stage
    cluster.namespaces.delete('shop')
    service.put('a', secretFor())
    stage.start()
    assert.match((await problem('NamespaceNotFound'))['message'] ?? '', /"shop" not found/)
    cluster.namespaces.set('shop', 'Active')
    await delivered('shop', 'token', 'first')
    await noProblems()
    cluster.namespaces.set('shop', 'Terminating')
    await cluster.people.delete(Secret, at)
    assert.equal((await problem('NamespaceTerminating'))['namespace'], 'shop')
    cluster.namespaces.set('shop', 'Active')
    await delivered('shop', 'token', 'first')
    await noProblems()
  })

  test('reports denials with the message of the cluster, but no value of the Secret', async () => {
    const { cluster, service, problem, delivered, noProblems, logged } = stage
    const denied = (message: string) => {
      cluster.deny = (verb, kind) =>
        verb === 'create' && kind === Secret ? new ApiError(403, 'Forbidden', message) : undefined
    }
    denied('secrets "token" is forbidden: exceeded quota: few')
    service.put('a', secretFor({ value: 'tell-nobody' }))
    stage.start()
    assert.match((await problem('Forbidden'))['message'] ?? '', /exceeded quota: few/)
    denied('admission webhook "policy" denied the request: tell-nobody is weak')
    await until('the message is replaced', async () =>
      /contains a value/.test((await problem('Forbidden'))['message'] ?? ''),
    )
    assert.doesNotMatch(JSON.stringify([service.reports, logged]), /tell-nobody/)
    cluster.deny = () => undefined
    await delivered('shop', 'token', 'tell-nobody')
    await noProblems()
  })

  test('does not bind a role that the cluster lacks, until it appears; a refused bind is a problem', async () => {
    const { cluster, service, problem, noProblems } = stage
    service.put('r', roleFor())
    stage.start()
    const { team, clusterRole, uid } = await problem('RoleNotFound')
    assert.deepEqual({ team, clusterRole, uid }, { team: 'web', clusterRole: 'view', uid: 'uid-of-web' })
    assert.deepEqual(cluster.writes, [])
    const message = 'clusterrolebindings is forbidden: user "agent" cannot bind clusterroles "view"'
    cluster.deny = (verb, kind) =>
      verb === 'create' && kind === ClusterRoleBinding ? new ApiError(403, 'Forbidden', message) : undefined
    await cluster.createRole('view')
    assert.equal((await problem('Forbidden'))['message'], message)
    cluster.deny = () => undefined
    await until('the role is bound', () => cluster.binding(bindingAt.name))
    await noProblems()
    assert.ok(await cluster.people.get(ClusterRole, { namespace: '', name: 'view' }))
  })

  for (const [code, how] of [
    [401, 'its key is revoked'],
    [403, 'its cluster is disabled'],
    [404, 'its cluster is deleted'],
  ] as const)
    test(`stops writing when ${how}, leaves everything, and continues later`, async () => {
      const { cluster, service, delivered, logged } = stage
      service.put('a', secretFor())
      service.put('b', secretFor({ name: 'other' }))
      const agent = stage.start()
      await delivered('shop', 'token', 'first')
      await delivered('shop', 'other', 'first')
      service.reject(code)
      await until('readiness says so', async () => /rejects the agent/.test(agent.about()))
      assert.ok(logged.some(({ text }) => /rejects the agent/.test(text)))
      const { length } = cluster.writes
      await patch({ data: { token: base64('edited') } })
      service.remove('b')
      const [opened, rejections] = [service.opened(), service.rejections()]
      await until('it has tried twice more', async () => service.rejections() > rejections + 1)
      assert.equal(cluster.writes.length, length)
      service.reject(undefined)
      await delivered('shop', 'token', 'first')
      await gone('other')
      assert.ok(service.opened() > opened)
      assert.deepEqual(cluster.writes.slice(length).toSorted(), [
        'delete Secret shop/other',
        'update Secret shop/token',
      ])
      assert.doesNotMatch(agent.about(), /rejects/)
    })

  test('without the management API, everything stays, and edits are still restored', async () => {
    const { cluster, service, delivered } = stage
    service.put('a', secretFor())
    service.put('b', secretFor({ name: 'other' }))
    stage.start()
    await delivered('shop', 'token', 'first')
    await delivered('shop', 'other', 'first')
    await service.stop()
    await patch({ data: { token: base64('edited') } })
    await delivered('shop', 'token', 'first')
    service.remove('b')
    service.holdsBookmark = true
    for (let n = 0; n < 3; n++) {
      const opened = service.opened()
      await service.start()
      await until('a stream without an end of its initial state', async () => service.opened() > opened)
      service.put(`new-${n}`, secretFor({ name: `new-${n}` }))
      await patch({ data: { token: base64(`edited ${n}`) } })
      await delivered('shop', 'token', 'first')
      await service.stop()
    }
    assert.ok(await cluster.secret('shop', 'other'))
    assert.equal(await cluster.secret('shop', 'new-0'), undefined)
    service.holdsBookmark = false
    await service.start()
    await gone('other')
    await delivered('shop', 'new-0', 'first')
    assert.ok(await cluster.secret('shop', 'token'))
  })

  test('without the cluster, it says so, and writes what is missing when the cluster is back', async () => {
    const { cluster, service, delivered } = stage
    service.put('a', secretFor())
    const agent = stage.start()
    await delivered('shop', 'token', 'first')
    await cluster.stop()
    service.put('a', secretFor({ value: 'second' }))
    await stage.problem('ClusterUnreachable')
    await cluster.start()
    await delivered('shop', 'token', 'second')
    await stage.noProblems()
    assert.ok(agent.isLeading)
  })

  test('after a restart, deletes what is no longer wanted, also in namespaces that nothing mentions any more', async () => {
    const { cluster, service, delivered, settled } = stage
    cluster.namespaces.set('jobs', 'Active')
    await cluster.createRole('view')
    service.put('a', secretFor())
    service.put('b', secretFor({ namespace: 'jobs' }))
    service.put('r', roleFor())
    const agent = stage.start()
    await delivered('jobs', 'token', 'first')
    await settled()
    await agent.stop()
    for (const name of ['a', 'b', 'r']) service.remove(name)
    service.put('c', secretFor({ name: 'other' }))
    stage.start()
    await delivered('shop', 'other', 'first')
    await gone('token')
    await until('the Secret in jobs is gone', async () => (await cluster.secret('jobs', 'token')) === undefined)
    await until('the binding is gone', async () => (await cluster.binding(bindingAt.name)) === undefined)
  })

  test('of two agents, one writes; the other one takes over', async () => {
    const { cluster, service, delivered } = stage
    service.put('a', secretFor())
    const agents = [stage.start(), stage.start()]
    await delivered('shop', 'token', 'first')
    assert.deepEqual(agents.map(one => one.isLeading).toSorted(), [false, true])
    assert.deepEqual(cluster.writes, ['create Secret shop/token'])
    await agents.find(one => one.isLeading)?.stop()
    service.put('a', secretFor({ value: 'second' }))
    await delivered('shop', 'token', 'second')
    assert.equal(cluster.writes.length, 2)
  })
})
