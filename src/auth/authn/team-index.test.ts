// The team index finds the parts it needs in the bytes of a team (D17, D23).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildApiServer } from '../../../test/support/in-process.ts'
import { Team } from '../../kinds/team.ts'
import { openTeamIndex } from './team-index.ts'

test('the username of a team is found whatever its labels and annotations contain (D23)', async () => {
  const apiServer = await buildApiServer()
  const marked = { username: 'web' }
  const made: [string, object][] = [
    ['web', { metadata: { annotations: marked }, spec: { username: 'shop' } }],
    ['web2', { metadata: { labels: { username: 'web2' } }, spec: { username: 'store' } }],
    ['plain', { spec: {} }],
    ['marked', { metadata: { annotations: { username: 'else', note: '"username":"marked"' } }, spec: {} }],
  ]
  for (const [name, { metadata, spec }] of made as [string, { metadata?: object; spec: object }][])
    await apiServer.resources.create(Team, '', { metadata: { name, ...metadata }, spec } as never)
  const teams = openTeamIndex({
    resources: apiServer.internalClient,
    peek: () => undefined,
    changed: () => {},
    failed: error => assert.fail(String(error)),
  })
  await teams.ready
  assert.deepEqual([teams.withUsername('shop'), teams.withUsername('store')], [['web'], ['web2']])
  assert.ok(![...teams.all()].some(({ name }) => name === 'plain'), 'one that says nothing about anybody is not kept')
  teams.stop()
  await apiServer.close()
})

test('a write of a team notifies only if permissions may have changed, and updates only the affected users', async () => {
  const apiServer = await buildApiServer()
  const callers = [
    { username: 'ada', groups: [] },
    { username: 'bob', groups: [] },
    { username: 'cem', groups: ['devs'] },
    { username: 'platform:team:web', groups: ['platform:team:web'] },
  ]
  const told: { readonly roles: boolean; readonly affected: readonly string[] | 'everybody' }[] = []
  const teams = openTeamIndex({
    resources: apiServer.internalClient,
    peek: () => undefined,
    changed: ({ roles, affects }) =>
      told.push({ roles, affected: affects ? callers.filter(affects).map(one => one.username) : 'everybody' }),
    failed: error => assert.fail(String(error)),
  })
  await teams.ready
  const at = { namespace: '', name: 'web' }
  const merge = async (spec: object) => {
    await apiServer.resources.patch(Team, at, { type: 'merge', body: { spec } as never })
    return told.splice(0)
  }
  const versions = () => [teams.versionOf('ada'), teams.versionOf('bob')]
  await apiServer.resources.create(Team, '', { metadata: { name: 'web' }, spec: { users: ['ada'] } } as never)
  assert.equal(told.splice(0).length, 1)
  const before = versions()

  assert.deepEqual(await merge({ displayName: 'The web' }), [])
  assert.deepEqual(versions(), before)

  assert.equal((await merge({ access: [{ users: ['bob'], verbs: ['get'] }] })).length, 1)
  assert.equal((await merge({ owner: { user: 'bob' } })).length, 1)
  assert.deepEqual(await merge({ clusterRoles: [{ name: 'view' }] }), [
    { roles: true, affected: ['ada', 'platform:team:web'] },
  ])

  assert.deepEqual(await merge({ users: ['bob'] }), [{ roles: false, affected: ['ada', 'bob', 'platform:team:web'] }])
  const [ada, bob] = versions()
  assert.notEqual(ada, before[0], 'who left is another')
  assert.notEqual(bob, before[1], 'who came is another')

  await apiServer.resources.create(Team, '', { metadata: { name: 'api' }, spec: { users: ['eve'] } } as never)
  assert.deepEqual(versions(), [ada, bob])
  told.splice(0)

  assert.deepEqual(await merge({ groups: ['devs'] }), [{ roles: false, affected: ['bob', 'cem', 'platform:team:web'] }])
  assert.ok(teams.versionOf('ada') !== ada && teams.versionOf('bob') !== bob, 'anybody may be in a group')
  teams.stop()
  await apiServer.close()
})
