// Revoking permissions: the next request is denied, and open watches end (D17, D18, D27).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  keys,
  must,
  openStage,
  type Person,
  rbac,
  refused,
  type Stage,
  secrets,
  soon,
  teams,
  withoutStatusWrites,
} from './people.ts'

/** The server would end any watch by itself, but only after half an hour. */
const timeout = 60_000
const api = 'rbac.authorization.k8s.io'
const mergeType = { 'content-type': 'application/merge-patch+json' }

describe('revoked permissions end:', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
    const rules = [{ verbs: ['get', 'list', 'watch'], apiGroups: ['management.platform.sh'], resources: ['teams'] }]
    await must(stage.admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'reader' }, rules }))
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'readers' } }))
    await must(
      stage.admin.ask(
        'POST',
        `${rbac}/clusterrolebindings`,
        bind('readers', 'reader', { kind: 'Group', name: 'platform:team:readers' }),
      ),
    )
  })
  after(() => stage.close())

  const bind = (name: string, role: string, subject: { kind: string; name: string }) => ({
    metadata: { name },
    roleRef: { apiGroup: api, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: api, ...subject }],
  })
  const named = async (user: string, name: string) =>
    stage.person(user, (await must(stage.admin.ask('POST', keys, { metadata: { name }, spec: { user } }))).spec.key)
  const whoami = (person: Person) => person.ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {})
  /** Resolves when the server ends the watch. */
  const ended = async (events: AsyncIterator<unknown>) => {
    for (;;) if ((await events.next()).done) return
  }
  /** A watch that is open: its first event has come. */
  const watching = async (person: Person, path: string) => {
    const events = person.watch(`${path}?watch=1`)
    const first = await events.next()
    assert.equal(first.value?.type, 'ADDED')
    return events
  }

  for (const [how, take] of Object.entries({
    disabled: (name: string) => stage.admin.ask('PATCH', `${keys}/${name}`, { spec: { disabled: true } }, mergeType),
    deleted: (name: string) => stage.admin.ask('DELETE', `${keys}/${name}`),
    narrowed: (name: string) =>
      stage.admin.ask('PATCH', `${keys}/${name}`, { spec: { scope: { clusters: [{ cluster: 'c' }] } } }, mergeType),
  }))
    test(`a key that is ${how} no longer authenticates, and its open watches end`, { timeout }, async () => {
      const boss = await named('admin', `to-be-${how}`)
      const events = await watching(boss, teams)
      await must(take(`to-be-${how}`))
      await refused(boss.ask('GET', `${teams}/readers`), how === 'narrowed' ? 403 : 401)
      await ended(events)
    })

  test('open watches of a key end when the key expires', { timeout }, async () => {
    const made = await must(
      stage.admin.ask('POST', keys, { metadata: { name: 'short' }, spec: { user: 'admin', ttl: 5 } }),
    )
    const boss = stage.person('admin', made.spec.key)
    const events = await watching(boss, teams)
    await ended(events)
    await refused(boss.ask('GET', teams), 401, /expired/)
  })

  test('a removed member of a team loses the permissions of the team at the next request', { timeout }, async () => {
    const ada = await stage.invite('ada')
    await refused(ada.ask('GET', `${teams}/readers`), 403)
    await must(stage.admin.ask('PATCH', `${teams}/readers`, { spec: { users: ['ada'] } }, mergeType))
    assert.deepEqual((await must(whoami(ada))).status.userInfo.groups.includes('platform:team:readers'), true)
    await must(ada.ask('GET', teams))
    const events = await watching(ada, teams)
    await must(stage.admin.ask('PATCH', `${teams}/readers`, { spec: { users: null } }, mergeType))
    await refused(ada.ask('GET', `${teams}/readers`), 403)
    await ended(events)
  })

  test('a changed role applies to the next request', async () => {
    await must(
      stage.admin.ask('POST', `${rbac}/clusterrolebindings`, bind('bob', 'reader', { kind: 'User', name: 'bob' })),
    )
    const bob = await stage.invite('bob')
    await must(bob.ask('GET', `${teams}/readers`))
    await must(stage.admin.ask('PATCH', `${rbac}/clusterroles/reader`, { rules: [] }, mergeType))
    await refused(bob.ask('GET', `${teams}/readers`), 403)
  })

  test('a filtered list contains only readable objects, also in counts and tokens; a filtered watch follows permissions (D27)', async () => {
    const cy = await stage.invite('cy')
    for (const name of ['a', 'b', 'c', 'd'])
      await must(stage.admin.ask('POST', secrets('shared'), { metadata: { name }, spec: { data: {} } }))
    const give = (name: string, users: string[]) =>
      must(
        stage.admin.ask(
          'PATCH',
          `${secrets('shared')}/${name}`,
          { spec: { access: [{ verbs: ['get'], users }] } },
          mergeType,
        ),
      )
    await give('b', ['cy'])
    await give('d', ['cy'])
    const namesOf = (list: { items: { metadata: { name: string } }[] }) => list.items.map(item => item.metadata.name)
    assert.deepEqual(namesOf(await must(cy.ask('GET', secrets('shared')))), ['b', 'd'])
    const page = await must(cy.ask('GET', `${secrets('shared')}?limit=1`))
    assert.deepEqual([namesOf(page), page.metadata.remainingItemCount], [['b'], undefined])
    assert.deepEqual(
      namesOf(await must(cy.ask('GET', `${secrets('shared')}?limit=1&continue=${page.metadata.continue}`))),
      ['d'],
    )
    const review = await must(
      cy.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        spec: {
          resourceAttributes: {
            verb: 'list',
            group: 'management.platform.sh',
            resource: 'sharedsecrets',
            namespace: 'shared',
          },
        },
      }),
    )
    assert.deepEqual([review.status.allowed, review.status.reason], [false, 'filtered'])

    const events = withoutStatusWrites(cy.watch(`${secrets('shared')}?watch=1`))
    const next = async () => {
      const { value } = await events.next()
      return `${value?.type} ${value?.object.metadata.name}`
    }
    assert.deepEqual([await next(), await next()], ['ADDED b', 'ADDED d'])
    await give('a', ['cy'])
    assert.equal(await next(), 'ADDED a')
    await give('b', [])
    assert.equal(await next(), 'DELETED b')
    // Rights that come and go without any change of the objects.
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'sharers' } }))
    await give('c', [])
    await must(
      stage.admin.ask(
        'PATCH',
        `${secrets('shared')}/c`,
        { spec: { access: [{ verbs: ['get'], teams: ['sharers'] }] } },
        mergeType,
      ),
    )
    await must(stage.admin.ask('PATCH', `${teams}/sharers`, { spec: { users: ['cy'] } }, mergeType))
    assert.equal(await next(), 'ADDED c')
    await must(stage.admin.ask('PATCH', `${teams}/sharers`, { spec: { users: null } }, mergeType))
    assert.equal(await next(), 'DELETED c')
    await events.return?.()
  })

  test('after a rotation both secrets work during the overlap, each with its own last use; then the old one expires (D22)', async () => {
    const made = await must(stage.admin.ask('POST', keys, { metadata: { name: 'turning' }, spec: { user: 'admin' } }))
    const old = stage.person('admin', made.spec.key)
    const rotated = await must(
      stage.admin.ask('POST', `${keys}/turning/rotate`, { kind: 'KeyRotation', spec: { overlapSeconds: 5 } }),
    )
    const fresh = stage.person('admin', rotated.spec.key)
    assert.notEqual(rotated.spec.key, made.spec.key)
    await must(old.ask('GET', teams))
    await must(fresh.ask('GET', teams))
    const { status } = await must(stage.admin.ask('GET', `${keys}/turning`))
    assert.equal(status.keys.length, 2)
    for (const key of status.keys) assert.ok(key.lastActivity, JSON.stringify(status))
    assert.ok(status.rotatedAt)
    await soon('the old key ends', async () => (await old.ask('GET', teams)).status === 401)
    await must(fresh.ask('GET', teams))
    await must(stage.admin.ask('POST', `${keys}/turning/rotate`, {}))
    await refused(fresh.ask('GET', `${keys}/turning`), 401, /^access key was rotated$/)
    await refused(stage.admin.ask('POST', `${keys}/turning/rotate`, { spec: { overlapSeconds: -1 } }), 422)
  })

  test('explanations contain the path from the key to the rule, near misses of a denial, and who-can (D27)', async () => {
    const dee = await stage.invite('dee')
    await must(
      stage.admin.ask('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'looker' },
        rules: [{ verbs: ['get'], apiGroups: ['management.platform.sh'], resources: ['teams'] }],
      }),
    )
    await must(
      stage.admin.ask('POST', `${rbac}/clusterrolebindings`, bind('dee', 'looker', { kind: 'User', name: 'dee' })),
    )
    const why = (person: Person, verb: string, more = {}) =>
      must(
        person.ask('POST', '/apis/management.platform.sh/v1/accessexplanations', {
          spec: {
            resourceAttributes: { verb, group: 'management.platform.sh', resource: 'teams', name: 'readers' },
            ...more,
          },
        }),
      )
    const yes = (await why(dee, 'get')).status
    assert.equal(yes.allowed, true)
    assert.match(
      yes.steps.join('\n'),
      /acts as dee[\s\S]*allowed by ClusterRoleBinding dee of ClusterRole looker to user dee/,
    )
    const no = (await why(dee, 'update')).status
    assert.equal(no.allowed, false)
    assert.deepEqual(no.nearMisses, ['ClusterRole looker grants get, not update on readers'])
    await refused(
      dee.ask('POST', '/apis/management.platform.sh/v1/accessexplanations', {
        spec: { user: 'admin', resourceAttributes: { verb: 'get', resource: 'teams' } },
      }),
      403,
    )
    const who = (await why(stage.admin, 'get', { whoCan: true })).status.who
    assert.ok(who.includes('user dee by ClusterRoleBinding dee'), who.join('\n'))
    assert.equal((await why(stage.admin, 'update', { user: 'dee' })).status.allowed, false)
    await must(stage.admin.ask('PATCH', `${teams}/readers`, { spec: { users: ['dee'] } }, mergeType))
    const permissions = await must(dee.ask('GET', `${teams}/readers/permissions`))
    assert.deepEqual(permissions.status.members, [{ user: 'dee', via: 'spec.users' }])
  })

  test('access entries and cluster roles of teams are mirrored as roles and bindings, and deleted with their object (D26)', async () => {
    await must(
      stage.admin.ask('POST', teams, {
        metadata: { name: 'mirrored' },
        spec: { access: [{ name: 'look', verbs: ['get'], users: ['zoe'] }], clusterRoles: [{ name: 'looker' }] },
      }),
    )
    await soon(
      'the role is there',
      async () => (await stage.admin.ask('GET', `${rbac}/clusterroles/access:teams:mirrored:look`)).status === 200,
    )
    await soon(
      'the binding is there',
      async () => (await stage.admin.ask('GET', `${rbac}/clusterrolebindings/team:mirrored:looker`)).status === 200,
    )
    const change = (spec: object) => must(stage.admin.ask('PATCH', `${teams}/mirrored`, { spec }, mergeType))
    await change({ access: null, clusterRoles: null })
    await soon(
      'the role goes with its entry',
      async () => (await stage.admin.ask('GET', `${rbac}/clusterroles/access:teams:mirrored:look`)).status === 404,
    )
    await change({ access: [{ name: 'look', verbs: ['get'], users: ['zoe'] }], clusterRoles: [{ name: 'looker' }] })
    await soon(
      'the role comes back with its entry',
      async () => (await stage.admin.ask('GET', `${rbac}/clusterroles/access:teams:mirrored:look`)).status === 200,
    )
    await must(stage.admin.ask('DELETE', `${teams}/mirrored`))
    await soon(
      'they go with it',
      async () => (await stage.admin.ask('GET', `${rbac}/clusterroles/access:teams:mirrored:look`)).status === 404,
    )
    await soon(
      'they go with it',
      async () => (await stage.admin.ask('GET', `${rbac}/clusterrolebindings/team:mirrored:looker`)).status === 404,
    )
  })

  test('token and access reviews about other users require permission', async () => {
    const eve = await stage.invite('eve')
    const review = (person: Person, token: string) =>
      person.ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token } })
    const { status, spec } = await must(review(stage.admin, eve.key))
    assert.deepEqual([status.authenticated, status.user.username, spec?.token], [true, 'eve', undefined])
    assert.equal(
      (await must(review(stage.admin, 'nobody-knows-this-key-of-nobody-at-all'))).status.authenticated,
      false,
    )
    await refused(review(eve, eve.key), 403)
    const may = await must(
      stage.admin.ask('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
        spec: {
          user: 'eve',
          resourceAttributes: { verb: 'delete', group: 'management.platform.sh', resource: 'teams' },
        },
      }),
    )
    assert.equal(may.status.allowed, false)
  })
})
