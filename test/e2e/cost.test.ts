// A slice of the cost prover (test/prove/cost): one request of a signed-in user costs the main thread what its size is worth, and no more.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Json } from '../../src/api/object.ts'
import { Team } from '../../src/kinds/team.ts'
import { proveSlices } from '../prove/cost/slices.ts'
import { openSystem, type System } from '../prove/cost/system.ts'

proveSlices({ 'every field of a key by merge patch': /^OwnedAccessKey \S+ by merge patch$/ })

const ours = '/kubernetes/management/apis/management.platform.sh/v1'

describe('limits of one request', () => {
  let system: System
  before(async () => {
    system = await openSystem(async internalClient => {
      const spec = { description: 'x'.repeat(2_000_000) }
      await internalClient.create(Team, '', { metadata: { name: 'larger', finalizers: ['example.com/keep'] }, spec })
    })
  })
  after(() => system.close())

  const ask = (method: string, url: string, body: unknown, type = 'application/json') =>
    system.ask({
      method,
      url,
      headers: { authorization: `Bearer ${system.adminKey}`, 'content-type': type },
      body: JSON.stringify(body),
    })
  const many = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))

  for (const [what, object] of Object.entries({
    'scope.rules': { spec: { scope: { rules: many(251, at => ({ verbs: ['get'], namespaces: [`n${at}`] })) } } },
    'scope.projects': { spec: { scope: { projects: many(251, at => ({ project: `p${at}` })) } } },
    'metadata.labels': { metadata: { labels: Object.fromEntries(many(251, at => [`k${at}`, 'v'])) } },
  }))
    test(`${what} has at most 250 entries`, async () => {
      const { code, text } = await ask('POST', `${ours}/ownedaccesskeys`, object)
      assert.equal(code, 422)
      assert.match(text, /must have at most 250 items/)
    })

  for (const [field, object] of Object.entries({
    'metadata.name': (text: string) => ({ metadata: { name: text } }),
    'metadata.ownerReferences[0].uid': (uid: string) => ({
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'default', uid }] },
    }),
    'spec.user': (user: string) => ({ spec: { user } }),
    'spec.groups[1]': (group: string) => ({ spec: { groups: ['short', group] } }),
    'spec.scope.rules[0].namespaces[0]': (name: string) => ({ spec: { scope: { rules: [{ namespaces: [name] }] } } }),
  }))
    test(`${field} has at most 2,048 characters, in a create and in a patch`, async () => {
      const tooLong = (text: string) => text.includes(`${field}: Too long: may not be more than 2048 bytes`)
      const created = await ask('POST', `${ours}/ownedaccesskeys`, object('x'.repeat(2049)))
      assert.equal(created.code, 422)
      assert.ok(tooLong(created.text), created.text)
      const { text } = await ask('POST', `${ours}/ownedaccesskeys`, { metadata: { generateName: 'short-' } })
      const url = `${ours}/ownedaccesskeys/${(JSON.parse(text) as { metadata: { name: string } }).metadata.name}`
      const patched = await ask('PATCH', url, object('x'.repeat(2049)), 'application/merge-patch+json')
      assert.ok(tooLong(patched.text), patched.text)
      const within = await ask('POST', `${ours}/ownedaccesskeys`, object('x'.repeat(2048)))
      assert.ok(!within.text.includes('Too long'), within.text)
    })

  test('after 100 errors in metadata, nothing that was not checked is stored', async () => {
    const finalizers = many(102, () => 'example.com/twice')
    for (const rest of [
      { ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'default', uid: 'x'.repeat(2049) }] },
      { labels: Object.fromEntries(many(251, at => [`k${at}`, 'v'])) },
      { annotations: { a: {} } },
      { ownerReferences: 5 },
    ]) {
      const { code, text } = await ask('POST', `${ours}/ownedaccesskeys`, { metadata: { finalizers, ...rest } })
      assert.equal(code, 422)
      assert.match(text, /metadata\.finalizers\[1\]: Duplicate value/)
    }
  })

  test('keys of a map have at most 2,048 characters, and names of managed fields 16,383', async () => {
    const since = await ask('POST', `${ours}/tokenrevocations`, {
      spec: { since: { ['x'.repeat(2049)]: '2026-01-01T00:00:00Z' } },
    })
    assert.equal(since.code, 422)
    assert.match(since.text, /spec\.since \(a key\): Too long: may not be more than 2048 bytes/)
    const { text } = await ask('POST', `${ours}/ownedaccesskeys`, { metadata: { generateName: 'managed-' } })
    const url = `${ours}/ownedaccesskeys/${(JSON.parse(text) as { metadata: { name: string } }).metadata.name}`
    const owning = (field: string) => {
      const entry = {
        manager: 'm',
        operation: 'Update',
        apiVersion: 'management.platform.sh/v1',
        fieldsType: 'FieldsV1',
      }
      const managedFields = [{ ...entry, time: '2026-01-01T00:00:00Z', fieldsV1: { 'f:spec': { [field]: {} } } }]
      return ask('PATCH', url, { metadata: { managedFields } }, 'application/merge-patch+json')
    }
    assert.equal((await owning(`f:${'x'.repeat(16_381)}`)).code, 200)
    const longer = await owning(`f:${'x'.repeat(16_382)}`)
    assert.equal(longer.code, 422)
    assert.match(longer.text, /managedFields \(a field\): Too long: may not be more than 16383 bytes/)
  })

  test('a name in an Impersonate header has at most 2,048 characters', async () => {
    for (const header of ['impersonate-user', 'impersonate-group', 'impersonate-uid']) {
      const headers = {
        authorization: `Bearer ${system.adminKey}`,
        'impersonate-user': 'ada',
        [header]: 'x'.repeat(2049),
      }
      const { code, text } = await system.ask({ method: 'GET', url: `${ours}/teams`, headers })
      assert.equal(code, 400)
      assert.match(text, /a name in an Impersonate header has more than 2048 characters/)
    }
  })

  test('a review accepts the long extra of a key with a large scope', async () => {
    const resourceAttributes = { verb: 'get', group: 'management.platform.sh', resource: 'teams', name: 'one' }
    const extra = { 'authentication.platform.sh/scope': ['x'.repeat(20_000)] }
    const url = '/kubernetes/management/apis/authorization.k8s.io/v1/subjectaccessreviews'
    assert.equal((await ask('POST', url, { spec: { user: 'ada', extra, resourceAttributes } })).code, 201)
  })

  test('a description, a message and an annotation may be longer', async () => {
    const long = 'x'.repeat(20_000)
    const object = { metadata: { generateName: 'long-', annotations: { note: long } }, spec: { description: long } }
    assert.equal((await ask('POST', `${ours}/teams`, object)).code, 201)
  })

  test('a body has at most 25,000 keys, without the first ten of each map', async () => {
    const labels = (count: number) => Object.fromEntries(many(count, at => [`k${at}`, 'v']))
    const object = (count: number) => ({ metadata: { name: 'wide', labels: labels(count + 10) } })
    for (const type of ['application/json', 'application/yaml']) {
      const within = await ask('POST', `${ours}/teams`, object(25_000), type)
      assert.match(within.text, /metadata\.labels: Too many: 25010: must have at most 250 items/)
      const beyond = await ask('POST', `${ours}/teams`, object(25_001), type)
      assert.equal(beyond.code, 413)
      assert.match(beyond.text, /more than 25000 keys in large maps/)
    }
  })

  test('a body has at most 1.5 MiB of text, however it is divided, in every format', async () => {
    const most = 1536 * 1024
    const bodies: { readonly [what: string]: (size: number) => Json } = {
      'one string': size => 'x'.repeat(size),
      'many strings': size => many(Math.ceil(size / 1000), () => 'x'.repeat(1000)),
      escapes: size => '"'.repeat(size / 2),
      'a key': size => ({ ['k'.repeat(size)]: 0 }),
    }
    for (const [what, make] of Object.entries(bodies))
      for (const type of ['application/json', 'application/yaml']) {
        const object = (size: number) => ({ metadata: { name: 'long' }, spec: { description: make(size) } })
        const within = await ask('POST', `${ours}/teams`, object(most - 1000), type)
        assert.doesNotMatch(within.text, /characters in strings/, what)
        const beyond = await ask('POST', `${ours}/teams`, object(most), type)
        assert.equal(beyond.code, 413, what)
        assert.match(beyond.text, /more than 1572864 characters in strings, keys and numbers/)
      }
  })

  test('aliases of YAML count toward the values and keys of a body', async () => {
    const send = (body: string) => {
      const headers = { authorization: `Bearer ${system.adminKey}`, 'content-type': 'application/yaml' }
      return system.ask({ method: 'POST', url: `${ours}/teams`, headers, body })
    }
    const list = (item: string, count: number) => `[${many(count, () => item).join(', ')}]`
    const values = await send(`metadata: {name: aliased}\nspec:\n  a: &a ${list('0', 1000)}\n  b: ${list('*a', 60)}\n`)
    assert.equal(values.code, 413, values.text)
    assert.match(values.text, /more than 50000 values/)
    const map = `{${many(500, at => `k${at}: 0`).join(', ')}}`
    const keys = await send(`metadata: {name: aliased}\nspec:\n  a: &a ${map}\n  b: ${list('*a', 60)}\n`)
    assert.equal(keys.code, 413, keys.text)
    assert.match(keys.text, /more than 25000 keys in large maps/)
  })

  test('YAML has at most 512 KiB, and no number of more than 400 digits', async () => {
    const send = (body: string) => {
      const headers = { authorization: `Bearer ${system.adminKey}`, 'content-type': 'application/yaml' }
      return system.ask({ method: 'POST', url: `${ours}/teams?dryRun=All`, headers, body })
    }
    const team = (description: string) => `metadata: {name: yaml}\nspec:\n  description: ${description}\n`
    assert.equal((await send(team('x'.repeat(511 * 1024)))).code, 201)
    const large = await send(team('x'.repeat(512 * 1024)))
    assert.equal(large.code, 400)
    assert.match(large.text, /more than 524288 characters of YAML: send JSON instead/)
    for (const digits of ['1'.repeat(500_000), '1'.repeat(401), `-${'1'.repeat(401)}`, `0x${'f'.repeat(401)}`]) {
      const { code, text } = await send(team(digits))
      assert.equal(code, 400, text)
      assert.match(text, /line 3, column 16: this number is too large/)
    }
    assert.equal((await send(team(`'${'1'.repeat(401)}'`))).code, 201)
  })

  test('managedFields of a request have at most 5,000 fields', async () => {
    await ask('POST', `${ours}/teams`, { metadata: { name: 'managed' }, spec: { description: 'x' } })
    // One of them is `f:spec`.
    const patch = (count: number) => {
      const fields = Object.fromEntries(many(count - 1, at => [`f:k${at}`, {}]))
      const entry = {
        manager: 'm',
        operation: 'Update',
        apiVersion: 'management.platform.sh/v1',
        fieldsType: 'FieldsV1',
      }
      const managedFields = [{ ...entry, fieldsV1: { 'f:spec': fields } }]
      return ask('PATCH', `${ours}/teams/managed`, { metadata: { managedFields } }, 'application/merge-patch+json')
    }
    const { code, text } = await patch(5001)
    assert.equal(code, 422, text.slice(0, 500))
    assert.match(text, /metadata\.managedFields: Too many: 5001: must have at most 5000 fields of all managers/)
    assert.equal((await patch(5000)).code, 200)
  })

  test('an apply ends with at most 10,000 fields of all managers', async () => {
    const apply = (manager: string, spec: object) =>
      ask(
        'PATCH',
        `${ours}/teams/applied?fieldManager=${manager}`,
        { apiVersion: 'management.platform.sh/v1', kind: 'Team', metadata: { name: 'applied' }, spec },
        'application/apply-patch+yaml',
      )
    const users = many(1900, at => `u${at}`)
    assert.equal((await apply('first', { users })).code, 201)
    for (const at of [2, 3, 4, 5]) assert.equal((await apply(`manager-${at}`, { users })).code, 200)
    const { code, text } = await apply('another', { users })
    assert.equal(code, 422, text.slice(0, 500))
    assert.match(text, /metadata\.managedFields: Too many: \d+: must have at most 10000 fields of all managers/)
    // Other writes are still possible, also with the entries as they were read.
    const patch = { metadata: { labels: { a: 'b' } } }
    assert.equal((await ask('PATCH', `${ours}/teams/applied`, patch, 'application/merge-patch+json')).code, 200)
    const headers = { authorization: `Bearer ${system.adminKey}` }
    const { text: read } = await system.ask({ method: 'GET', url: `${ours}/teams/applied`, headers })
    const object = JSON.parse(read) as { spec: object }
    const written = await ask('PUT', `${ours}/teams/applied`, { ...object, spec: { ...object.spec, displayName: 'y' } })
    assert.equal(written.code, 200, written.text.slice(0, 500))
    assert.equal((await apply('manager-2', { description: 'x' })).code, 200)
    assert.equal((await apply('another', { users })).code, 200)
  })

  test('an object has at most 200 managers that apply', async () => {
    const apply = (at: number) =>
      ask(
        'PATCH',
        `${ours}/teams/crowded?fieldManager=manager-${at}`,
        { apiVersion: 'management.platform.sh/v1', kind: 'Team', metadata: { name: 'crowded', labels: { a: 'b' } } },
        'application/apply-patch+yaml',
      )
    for (let at = 0; at < 200; at++) assert.ok((await apply(at)).code < 300, `manager ${at}`)
    const { code, text } = await apply(200)
    assert.equal(code, 422, text.slice(0, 500))
    assert.match(text, /metadata\.managedFields: Too many: 201: must have at most 200 items/)
    for (const value of ['c', 'd']) {
      const patch = { metadata: { labels: { a: value } } }
      assert.equal((await ask('PATCH', `${ours}/teams/crowded`, patch, 'application/merge-patch+json')).code, 200)
    }
  })

  test('a JSON Patch has at most 10,000 operations and 60,000 path segments', async () => {
    await ask('POST', `${ours}/teams`, { metadata: { name: 'patched' }, spec: { description: 'x' } })
    const patch = (count: number, path: string) =>
      ask(
        'PATCH',
        `${ours}/teams/patched`,
        many(count, () => ({ op: 'test', path, value: 'x' })),
        'application/json-patch+json',
      )
    assert.equal((await patch(10_000, '/spec/description')).code, 200)
    const operations = await patch(10_001, '/spec/description')
    assert.equal(operations.code, 413)
    assert.match(operations.text, /maximum operations in a JSON patch is 10000, got 10001/)
    const segments = await patch(601, '/spec'.repeat(100))
    assert.equal(segments.code, 413)
    assert.match(segments.text, /maximum of path segments in a JSON patch is 60000/)
    // A pointer to nothing, but within the limits.
    assert.equal((await patch(600, '/spec'.repeat(100))).code, 422)
  })

  test('a write compares at most 100,000 permissions that its author has in parts', async () => {
    const rbac = '/kubernetes/management/apis/rbac.authorization.k8s.io/v1'
    const created = await ask('POST', `${ours}/ownedaccesskeys`, { spec: { user: 'author' } })
    const { key } = (JSON.parse(created.text) as { spec: { key: string } }).spec
    const words = (count: number) => many(count, at => `word-${at}`)
    const rule = (resources: readonly string[]) => ({ verbs: words(200), apiGroups: ['example.com'], resources })
    const rules = [
      { verbs: ['create'], apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'] },
      ...words(250).map(resource => ({ ...rule([resource]), verbs: ['*'] })),
    ]
    await ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'author' }, rules })
    const roleRef = { kind: 'ClusterRole', name: 'author' }
    const subjects = [{ kind: 'User', name: 'author' }]
    await ask('POST', `${rbac}/clusterrolebindings`, { metadata: { name: 'author' }, roleRef, subjects })
    const create = (granted: readonly object[]) =>
      system.ask({
        method: 'POST',
        url: `${rbac}/namespaces/default/roles?dryRun=All`,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ metadata: { name: 'large' }, rules: granted }),
      })
    const half = rule(words(250))
    assert.equal((await create([half, half])).code, 201)
    const { code, text } = await create([half, half, rule(['word-0', 'word-1'])])
    assert.equal(code, 403)
    assert.match(text, /at most 100000 combinations of verb, group, resource and name/)
    // A rule that the author has as it is needs no comparison.
    assert.equal((await create([half, half, rule(['word-0'])])).code, 201)
  })

  test('an object that would be stored with more than 1 MiB, or a secret with 320 KiB beside its data, is 413', async () => {
    const team = (size: number) =>
      ask('POST', `${ours}/teams`, { metadata: { generateName: 'large-' }, spec: { description: 'x'.repeat(size) } })
    assert.equal((await team(1000 * 1024)).code, 201)
    const refused = await team(1024 * 1024)
    assert.equal(refused.code, 413)
    assert.match(refused.text, /at most 1048576 are allowed/)
    const data = { a: Buffer.alloc(512 * 1024).toString('base64') }
    const secret = (size: number) =>
      ask('POST', `${ours}/namespaces/large/sharedsecrets`, {
        metadata: { generateName: 'large-' },
        spec: { data, description: 'x'.repeat(size) },
      })
    assert.equal((await secret(300 * 1024)).code, 201)
    assert.match((await secret(320 * 1024)).text, /at most 327680 are allowed, data not counted/)
  })

  test('the size of an object is counted in bytes, also in a dry run', async () => {
    const object = { metadata: { name: 'wide' }, spec: { description: '€'.repeat(400_000) } }
    assert.equal((await ask('POST', `${ours}/teams`, object)).code, 413)
    assert.equal((await ask('POST', `${ours}/teams?dryRun=All`, object)).code, 413)
  })

  test('encrypted fields of keys count toward their size', async () => {
    const spec = { user: 'somebody', identity: { userId: '1', connector: 'c', connectorData: 'x'.repeat(1_100_000) } }
    const { code, text } = await ask('POST', `${ours}/ownedaccesskeys`, { spec })
    assert.equal(code, 413, text)
  })

  test('a stored object that is too large can be made smaller and deleted, not larger', async () => {
    const patch = (description: string) =>
      ask('PATCH', `${ours}/teams/larger`, { spec: { description } }, 'application/merge-patch+json')
    assert.equal((await patch('x'.repeat(2_000_001))).code, 413)
    assert.equal((await patch('x'.repeat(1_500_000))).code, 200)
    const deleted = await ask('DELETE', `${ours}/teams/larger`, {})
    assert.equal(deleted.code, 200, deleted.text)
    assert.match(deleted.text, /deletionTimestamp/)
  })
})
