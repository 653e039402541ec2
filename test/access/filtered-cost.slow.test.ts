// The cost of filtered lists and watches: they evaluate the objects that the caller may see, not all stored objects (issue 16).

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { Caller } from '../../src/api/caller.ts'
import type { Kind } from '../../src/api/kind.ts'
import type { Resource } from '../../src/api/object.ts'
import type { ListOptions } from '../../src/api/resources.ts'
import type { ApiServer } from '../../src/apiserver/api-server.ts'
import { buildApiServer } from '../../src/apiserver/build.ts'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import { ProjectSecret } from '../../src/kinds/project-secret.ts'
import { ClusterRole, ClusterRoleBinding, RoleBinding } from '../../src/kinds/rbac.ts'
import { SharedSecret } from '../../src/kinds/shared-secret.ts'
import { Team } from '../../src/kinds/team.ts'
import { openStorage } from '../../src/storage/index.ts'
import type { Storage } from '../../src/storage/storage.ts'

const rbac = 'rbac.authorization.k8s.io'
const ours = 'management.platform.sh'
/** Each object may be evaluated for `get` and for the verb, and again by its last state. */
const handful = 40

describe('20,000 objects of others and a few of the caller', () => {
  let storage: Storage
  let apiServer: ApiServer
  before(async () => {
    storage = await openStorage({ engine: 'memory', directory: '', now: Date.now })
    apiServer = buildApiServer({
      storage,
      keys: [{ id: 'test', key: randomBytes(32) }],
      now: Date.now,
      failed: (_, error) => assert.fail(String(error)),
    })
    await apiServer.ready
    const { internalClient } = apiServer.registry
    const create = (kind: Kind, namespace: string, name: string, rest: object) =>
      internalClient.create(kind, namespace, { metadata: { name }, ...rest })
    await create(Team, '', 'web', { spec: { users: ['eve'], owner: { user: 'eve' } } })
    const many = async (count: number, make: (at: number) => Promise<unknown>) => {
      for (let at = 0; at < count; at += 500)
        await Promise.all(Array.from({ length: Math.min(500, count - at) }, (_, each) => make(at + each)))
    }
    await many(20_000, at =>
      create(SharedSecret, `n${at % 50}`, `s${at}`, { spec: { owner: { user: `user-${at % 5000}` } } }),
    )
    for (const kind of [ProjectSecret, Team, OwnedAccessKey])
      await many(2000, at =>
        create(kind, kind.namespaced ? `p-n${at % 50}` : '', `s${at}`, {
          spec: kind === OwnedAccessKey ? { user: `user-${at}` } : { owner: { user: `user-${at}` } },
        }),
      )
    await many(2000, at => create(OwnedAccessKey, '', `t${at}`, { spec: { team: `s${at}` } }))
    for (const kind of [SharedSecret, ProjectSecret]) {
      await create(kind, 'p-n1', 'owned', { spec: { owner: { user: 'eve' } } })
      await create(kind, 'p-n2', 'of-the-team', { spec: { owner: { team: 'web' } } })
      await create(kind, 'p-n3', 'shared', { spec: { access: [{ verbs: ['get'], users: ['eve'] }] } })
      await create(kind, 'p-n4', 'everyone', { spec: { access: [{ verbs: ['get'], users: ['*'] }] } })
    }
    await create(OwnedAccessKey, '', 'mine', { spec: { user: 'eve' } })
    await create(OwnedAccessKey, '', 'of-my-team', { spec: { team: 'web' } })
    await create(OwnedAccessKey, '', 'of-no-team', { spec: { team: 'gone' } })
    const rules = (resource: string, resourceNames: string[], verb = 'get') => ({
      rules: [{ verbs: [verb], apiGroups: [ours], resources: [resource], resourceNames }],
    })
    await create(ClusterRole, '', 'three-teams', rules('teams', ['s1', 's2', 's3']))
    await create(ClusterRole, '', 'one-name', rules('sharedsecrets', ['s7']))
    await create(ClusterRole, '', 'missing-team', rules('teams', ['gone'], 'update'))
    for (const role of ['three-teams', 'one-name', 'missing-team'])
      await create(ClusterRoleBinding, '', `${role}-for-eve`, {
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: rbac, kind: 'User', name: 'eve' }],
      })
  })
  after(async () => {
    apiServer.stop()
    await storage.close()
  })

  const eve = (): Caller => ({
    identity: 'User',
    username: 'eve',
    groups: ['system:authenticated', 'platform:user:eve', 'platform:team:web'],
  })
  /** A selection as a request gets it, whose evaluations are counted. */
  const counted = (kind: Kind, verb: string, caller: Caller) => {
    const target = { group: kind.group, resource: kind.plural, namespace: '' }
    const verdict = apiServer.authorizer.authorize(caller, { verb, target })
    assert.ok(verdict.answer === 'only')
    const count = { evaluated: 0 }
    const only = (object: Resource) => {
      count.evaluated++
      return verdict.filter(object)
    }
    return { count, selection: { only, among: verdict.among } }
  }
  const namesOf = async (kind: Kind, options: ListOptions, caller = eve()) => {
    const { items } = await apiServer.registry.as(caller).list(kind, options)
    return items.map(({ ref }) => ref.name).sort()
  }

  for (const [kind, expected] of [
    [SharedSecret, ['everyone', 'of-the-team', 'owned', 's7', 'shared']],
    [ProjectSecret, ['everyone', 'of-the-team', 'owned', 'shared']],
    [Team, ['s1', 's2', 's3', 'web']],
    [OwnedAccessKey, ['mine', 'of-my-team', 'of-no-team']],
    [RoleBinding, []],
  ] as const)
    test(`a list of ${kind.plural} evaluates only the objects it shows`, async () => {
      const { count, selection } = counted(kind, 'list', eve())
      assert.deepEqual(await namesOf(kind, selection), expected)
      assert.ok(count.evaluated <= handful, `evaluated ${count.evaluated}`)
    })

  test('a key restricted to a project evaluates the secrets of that project', async () => {
    const admin = { identity: 'User', username: 'root', groups: ['system:authenticated', 'system:masters'] } as const
    const caller = { ...admin, scope: { projects: [{ project: 'n1' }] } }
    const { count, selection } = counted(ProjectSecret, 'list', caller)
    assert.equal((await namesOf(ProjectSecret, selection, caller)).length, 41)
    assert.ok(count.evaluated <= 2 * 41, `evaluated ${count.evaluated}`)
  })

  test('a key restricted to all projects evaluates the secrets of all projects', async () => {
    const groups = ['system:authenticated', 'system:masters']
    const caller: Caller = { username: 'root', groups, scope: { projects: [{ project: '*' }] } }
    const { selection } = counted(ProjectSecret, 'list', caller)
    assert.equal((await namesOf(ProjectSecret, selection, caller)).length, 2004)
  })

  test('a watch evaluates only what it shows: from its start, from a resourceVersion, and after a change of permissions', async () => {
    const { count, selection } = counted(SharedSecret, 'watch', eve())
    let again = () => {}
    const refilter = (callback: () => void) => {
      again = callback
      return () => {}
    }
    const resources = apiServer.registry.as(eve())
    const { resourceVersion } = await resources.list(SharedSecret, { ...selection, limit: 1 })
    const resumed = await resources.watch(SharedSecret, { ...selection, resourceVersion })
    resumed.stop()
    const watch = await resources.watch(SharedSecret, { ...selection, refilter, resourceVersion: '0' })
    assert.equal((await watch.next())?.length, 5)
    const next = watch.next()
    const binding = { namespace: '', name: 'one-name-for-eve' }
    const unsubscribe = apiServer.permissionsChanged(() => again())
    await apiServer.registry.internalClient.delete(ClusterRoleBinding, binding)
    const [event] = (await next) ?? []
    unsubscribe()
    assert.deepEqual([event?.type, event?.document.ref.name], ['DELETED', 's7'])
    watch.stop()
    assert.ok(count.evaluated <= 2 * handful, `evaluated ${count.evaluated}`)
  })
})
