// AuditEvent (D70): what administrators, users and owners see of the audit log, by list and by watch, across restart and rotation.

import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'

const ours = '/apis/management.platform.sh/v1'
const [events, teams, keys] = [`${ours}/auditevents`, `${ours}/teams`, `${ours}/ownedaccesskeys`]
const secrets = `${ours}/namespaces/default/sharedsecrets`
const merge = { 'content-type': 'application/merge-patch+json' }

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever is there
type Any = any

const path = (selector: string, more = '') => `${events}?fieldSelector=${encodeURIComponent(selector)}${more}`

/** All pages. A page may be empty and still have a successor. */
async function search(server: Server, selector = '', key?: string, limit = 500): Promise<Any[]> {
  const found: Any[] = []
  let next = ''
  do {
    const page = `&limit=${limit}${next ? `&continue=${next}` : ''}`
    const { status: code, body } = await server.request('GET', path(selector, page), key ? { key } : {})
    assert.equal(code, 200, JSON.stringify(body))
    found.push(...body.items)
    next = body.metadata.continue ?? ''
  } while (next)
  return found
}

async function keyOf(server: Server, user: string, spec: object = {}): Promise<string> {
  const made = await server.request('POST', keys, { body: { metadata: { name: user }, spec: { user, ...spec } } })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  return made.body.spec.key
}

describe('who sees which events', () => {
  let server: Server
  const keyFor: { [user: string]: string } = {}
  let secretUid: string
  before(async () => {
    server = await startServer({ storage: 'memory', inProcess: true })
    for (const user of ['ada', 'eve', 'bob']) keyFor[user] = await keyOf(server, user)
    await server.request('POST', teams, { body: { metadata: { name: 'web' }, spec: { users: ['bob'] } } })
    const spec = { owner: { user: 'ada' }, access: [{ verbs: ['get'], users: ['eve'] }] }
    const made = await server.request('POST', secrets, { body: { metadata: { name: 'db' }, spec } })
    secretUid = made.body.metadata.uid
    await server.request('GET', `${secrets}/db`, { key: keyFor['eve'] as string })
    await server.request('GET', `${teams}/web`, { key: keyFor['eve'] as string })
  })
  after(() => server.stop())

  test('an administrator sees everything: who deleted a team, with code, address and key, also when it is gone', async () => {
    await server.request('POST', teams, { body: { metadata: { name: 'gone' } } })
    const { body } = await server.request('GET', `${teams}/gone`)
    await server.request('DELETE', `${teams}/gone`)
    const found = await search(server, 'verb=delete,resource=teams,name=gone')
    assert.equal(found.length, 1)
    const [event] = found
    assert.deepEqual(
      [event.kind, event.verb, event.user.username, event.responseStatus.code, event.objectRef.uid, event.redacted],
      ['AuditEvent', 'delete', 'admin', 200, body.metadata.uid, undefined],
    )
    assert.ok(event.sourceIPs.length)
    assert.equal(event.annotations['platform.sh/access-key'], 'admin')
    const byUid = await search(server, `uid=${body.metadata.uid}`)
    assert.deepEqual(
      byUid.map(one => one.verb),
      ['delete', 'create'],
      'newest first',
    )
  })

  test('others see their own actions in full, denials included, and no action of others', async () => {
    const found = await search(server, 'resource!=ownedaccesskeys', keyFor['eve'])
    assert.deepEqual(
      found.map(one => [one.user.username, one.verb, one.objectRef.resource, one.responseStatus.code]),
      [
        ['eve', 'get', 'teams', 403],
        ['eve', 'get', 'sharedsecrets', 200],
      ],
    )
    assert.ok(found.every(one => one.sourceIPs.length && one.redacted === undefined))
  })

  test('owners see actions of others on their objects, without addresses, groups and bodies', async () => {
    const found = await search(server, 'resource=sharedsecrets,user!=system:platform', keyFor['ada'])
    assert.deepEqual(
      found.map(one => [one.user.username, one.verb, one.objectRef.name, one.objectRef.uid, one.redacted]),
      [
        ['eve', 'get', 'db', secretUid, true],
        ['admin', 'create', 'db', secretUid, true],
      ],
    )
    for (const event of found) {
      assert.deepEqual(Object.keys(event.user), ['username'])
      assert.deepEqual(
        [event.sourceIPs, event.userAgent, event.requestObject, event.responseObject],
        [undefined, undefined, undefined, undefined],
      )
      assert.deepEqual(Object.keys(event.annotations), ['authorization.k8s.io/decision'])
    }
  })

  test('a selector does not reveal hidden events', async () => {
    assert.deepEqual(await search(server, 'user=admin,resource=teams', keyFor['eve']), [])
    assert.deepEqual(await search(server, `uid=${secretUid},user=admin`, keyFor['eve']), [])
  })

  test('an object of the same name with another owner shows nothing of the earlier one', async () => {
    const made = { metadata: { name: 'reused' }, spec: { owner: { user: 'admin' } } }
    await server.request('POST', secrets, { body: made })
    await server.request('DELETE', `${secrets}/reused`)
    await server.request('POST', secrets, { body: { ...made, spec: { owner: { user: 'ada' } } } })
    const found = await search(server, 'name=reused', keyFor['ada'])
    assert.deepEqual(
      found.map(one => one.verb),
      ['create'],
    )
  })

  test('members of the owning team are owners until they leave', async () => {
    const body = { metadata: { name: 'of-web' }, spec: { owner: { team: 'web' } } }
    await server.request('POST', secrets, { body })
    assert.equal((await search(server, 'name=of-web', keyFor['bob'])).length, 1)
    await server.request('PATCH', `${teams}/web`, { headers: merge, body: { spec: { users: [] } } })
    assert.equal((await search(server, 'name=of-web', keyFor['bob'])).length, 0)
  })

  test('a subject with the name of a user is somebody else', async () => {
    const { body } = await server.request('POST', keys, {
      body: { metadata: { name: 'subject-eve' }, spec: { subject: 'eve' } },
    })
    assert.deepEqual(await search(server, 'user=eve', body.spec.key), [])
  })

  test('a key whose scope excludes audit events gets a 403', async () => {
    const scoped = await keyOf(server, 'scoped', { scope: { projects: [{ project: 'shop' }] } })
    const { status: code } = await server.request('GET', events, { key: scoped })
    assert.equal(code, 403)
  })

  test('the permission list shows everything, and a review tells the difference', async () => {
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const auditor = await keyOf(server, 'auditor')
    const review = async () =>
      (
        await server.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
          key: auditor,
          body: {
            spec: { resourceAttributes: { verb: 'list', group: 'management.platform.sh', resource: 'auditevents' } },
          },
        })
      ).body.status.allowed
    assert.equal(await review(), false)
    await server.request('POST', `${rbac}/clusterroles`, {
      body: {
        metadata: { name: 'auditor' },
        rules: [{ verbs: ['list', 'watch'], apiGroups: ['management.platform.sh'], resources: ['auditevents'] }],
      },
    })
    await server.request('POST', `${rbac}/clusterrolebindings`, {
      body: {
        metadata: { name: 'auditor' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'auditor' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'auditor' }],
      },
    })
    assert.equal(await review(), true)
    assert.equal((await search(server, 'user=admin,verb=create,name=db', auditor)).length, 1)
  })

  test('a Table has the columns Time, User, Verb, Object and Code', async () => {
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const { body } = await server.request('GET', path('name=db,verb=create'), { headers: { accept } })
    const columns = body.columnDefinitions.map((column: Any) => column.name)
    assert.deepEqual(columns, ['Name', 'Time', 'User', 'Verb', 'Object', 'Code', 'Age'])
    assert.deepEqual(body.rows[0].cells.slice(2, 6), ['admin', 'create', 'sharedsecrets/default/db', 201])
  })

  for (const [selector, message] of [
    ['color=red', /color/],
    ['code=abc', /code.*403.*4xx/],
    ['from=yesterday', /from.*RFC 3339/],
    ['to!=2026-01-01T00:00:00Z', /to.*=/],
    ['user', /user/],
    ['stage=Done', /stage.*ResponseComplete/],
  ] as const)
    test(`the selector ${selector} is rejected`, async () => {
      const { status: code, body } = await server.request('GET', path(selector))
      assert.deepEqual([code, body.reason], [400, 'BadRequest'])
      assert.match(body.message, message)
    })

  test('a label selector and a foreign continue token are rejected', async () => {
    const labelled = await server.request('GET', `${events}?labelSelector=a%3Db`)
    assert.equal(labelled.status, 400)
    for (const token of ['nonsense', Buffer.from('{"v":"audit/1","file":"1:1","at":1}').toString('base64url')]) {
      const { status: code } = await server.request('GET', `${events}?continue=${token}`)
      assert.ok(code === 400 || code === 410, String(code))
    }
  })

  test('get, create and delete are not served', async () => {
    assert.equal((await server.request('GET', `${events}/audit-1`)).status, 405)
    assert.equal((await server.request('POST', events, { body: {} })).status, 405)
    assert.equal((await server.request('DELETE', events)).status, 405)
  })
})

describe('pages and times', () => {
  let server: Server
  before(async () => {
    server = await startServer({ storage: 'memory', inProcess: true })
    for (let index = 0; index < 25; index++)
      await server.request('POST', teams, { body: { metadata: { name: `team-${index}` } } })
  })
  after(() => server.stop())

  test('pages continue without gaps or repeats', async () => {
    const all = await search(server, 'resource=teams,verb=create')
    const paged = await search(server, 'resource=teams,verb=create', undefined, 7)
    assert.equal(all.length, 25)
    assert.deepEqual(
      paged.map(one => one.metadata.uid),
      all.map(one => one.metadata.uid),
    )
    assert.equal(new Set(all.map(one => one.metadata.uid)).size, 25)
  })

  test('from and to are inclusive, and != excludes', async () => {
    const all = await search(server, 'resource=teams,verb=create')
    const [from, to] = [all[20].stageTimestamp, all[10].stageTimestamp]
    const between = await search(server, `resource=teams,verb=create,from=${from},to=${to}`)
    assert.ok(between.length >= 11 && between.length <= 13, `${between.length}`)
    assert.ok(between.some(one => one.metadata.uid === all[20].metadata.uid))
    assert.ok(between.some(one => one.metadata.uid === all[10].metadata.uid))
    const others = await search(server, 'resource!=teams,verb=create')
    assert.ok(others.length && others.every(one => one.objectRef.resource !== 'teams'))
  })

  test('a code class selects all its codes', async () => {
    await server.request('POST', teams, { body: { metadata: { name: 'team-1' } } })
    const found = await search(server, 'code=4xx')
    assert.deepEqual(
      found.map(one => one.responseStatus.code),
      [409],
    )
    assert.equal((await search(server, 'code=409')).length, 1)
  })
})

describe('watches', () => {
  let server: Server
  before(async () => {
    server = await startServer({ storage: 'memory', inProcess: true })
  })
  after(() => server.stop())

  const first = async (watch: AsyncIterableIterator<Any>) => {
    const { value } = await watch.next()
    return value
  }

  test('a watch continues where the list ended, and follows the selector', async () => {
    const { body } = await server.request('GET', path('resource=teams'))
    await server.request('POST', keys, { body: { metadata: { name: 'other' }, spec: { user: 'x' } } })
    await server.request('POST', teams, { body: { metadata: { name: 'before' } } })
    const watch = server.watch(path('resource=teams', `&watch=1&resourceVersion=${body.metadata.resourceVersion}`))
    const one = await first(watch)
    assert.deepEqual([one.type, one.object.objectRef.name], ['ADDED', 'before'])
    await server.request('POST', teams, { body: { metadata: { name: 'later' } } })
    const two = await first(watch)
    assert.equal(two.object.objectRef.name, 'later')
    await watch.return?.()
    const [listed] = await search(server, 'resource=teams,name=later')
    assert.equal(listed.metadata.uid, two.object.metadata.uid, 'the same event has the same uid')
  })

  test('an owner sees only events of owned objects; a lost team ends that', async () => {
    const bob = await keyOf(server, 'bob')
    await server.request('POST', teams, { body: { metadata: { name: 'web' }, spec: { users: ['bob'] } } })
    const { body } = await server.request('GET', path('resource=sharedsecrets'), { key: bob })
    const watch = server.watch(
      path('resource=sharedsecrets', `&watch=1&resourceVersion=${body.metadata.resourceVersion}`),
      { key: bob },
    )
    const make = (name: string, owner: object) =>
      server.request('POST', secrets, { body: { metadata: { name }, spec: { owner } } })
    await make('theirs', { user: 'admin' })
    await make('ours', { team: 'web' })
    const one = await first(watch)
    assert.deepEqual([one.object.objectRef.name, one.object.redacted], ['ours', true])
    await server.request('PATCH', `${teams}/web`, { headers: merge, body: { spec: { users: [] } } })
    await make('no-longer-ours', { team: 'web' })
    await make('own', { user: 'bob' })
    assert.equal((await first(watch)).object.objectRef.name, 'own')
    await watch.return?.()
  })

  test('a resourceVersion that is no longer buffered ends with 410', async () => {
    const watch = server.watch(`${events}?watch=1&resourceVersion=1`)
    const one = await first(watch)
    assert.deepEqual([one.type, one.object.code, one.object.reason], ['ERROR', 410, 'Expired'])
    await watch.return?.()
  })
})

test('events survive a restart and a rotation, and pages continue across files', async () => {
  const server = await startServer({ storage: 'sqlite' })
  try {
    const make = (name: string) => server.request('POST', teams, { body: { metadata: { name } } })
    for (let index = 0; index < 5; index++) await make(`a-${index}`)
    await search(server)
    const log = join(server.directory, 'audit.log')
    const early = await server.request('GET', path('resource=teams,verb=create', '&limit=2'))
    await server.restart(async () => renameSync(log, join(server.directory, 'audit-2020-01-31T12-00-00.000.log')))
    for (let index = 0; index < 5; index++) await make(`b-${index}`)
    const found = await search(server, 'resource=teams,verb=create', undefined, 3)
    assert.deepEqual(
      found.map(one => one.objectRef.name),
      ['b-4', 'b-3', 'b-2', 'b-1', 'b-0', 'a-4', 'a-3', 'a-2', 'a-1', 'a-0'],
    )
    // A page before a restart and a rotation continues after them.
    const later = await server.request(
      'GET',
      path('resource=teams,verb=create', `&limit=2&continue=${early.body.metadata.continue}`),
    )
    assert.deepEqual(
      later.body.items.map((one: Any) => one.objectRef.name),
      ['a-2', 'a-1'],
    )
    const { body } = await server.request('GET', path('resource=teams,verb=create', '&limit=2'))
    renameSync(log, join(server.directory, 'audit-2026-01-31T12-00-00.000.log'))
    await make('c')
    const rest = await server.request(
      'GET',
      path('resource=teams,verb=create', `&limit=2&continue=${body.metadata.continue}`),
    )
    assert.deepEqual(
      rest.body.items.map((one: Any) => one.objectRef.name),
      ['b-2', 'b-1'],
    )
    assert.equal((await search(server, 'name=c')).length > 0, true)
  } finally {
    await server.stop()
  }
})

for (const [target, why] of [
  ['off', /audit\.log is off.*set audit\.log to a file/],
  ['-', /standard output.*set audit\.log to a file/],
] as const)
  test(`with audit.log ${target}, the error says what to set`, async () => {
    const server = await startServer({ storage: 'memory', args: ['--audit-log', target] })
    try {
      for (const more of ['', '?watch=1']) {
        const { status: code, body } = await server.request('GET', `${events}${more}`)
        assert.deepEqual([code, body.reason], [503, 'ServiceUnavailable'])
        assert.equal(body.details.causes[0].reason, 'AuditLogUnreadable')
        assert.match(body.message, why)
      }
    } finally {
      await server.stop()
    }
  })
