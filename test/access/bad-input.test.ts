// Invalid input of access control: malformed Authorization headers, contradicting keys, invalid scopes and rules.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openWire, type Wire } from '../support/wire.ts'
import { keys, must, openStage, type Person, rbac, refused, type Stage, secrets, teams } from './people.ts'

describe('rejected input:', () => {
  let stage: Stage
  let admin: Person
  let wire: Wire
  before(async () => {
    stage = await openStage()
    admin = stage.admin
    wire = openWire(stage.server)
  })
  after(() => stage.close())
  const key = (spec: object) => admin.ask('POST', keys, { spec })
  const rule = (fields: object) => key({ scope: { rules: [fields] } })

  test('an Authorization header that is empty, duplicated, too long, not ASCII or not Bearer gets 401 with the expected format', async () => {
    const good = `Bearer ${stage.server.adminKey}`
    for (const [authorization, why] of [
      ['', /malformed Authorization header: send Authorization: Bearer <ACCESS_KEY>/],
      ['Bearer ', /malformed/],
      [`Bearer ${'x'.repeat(5000)}`, /malformed/],
      ['Basic YWRtaW46YWRtaW4=', /malformed/],
      [good.replace(' ', '  x '), /malformed/],
      [`Bearer ${'é'.repeat(40)}`, /unknown access key/],
      [`${good.slice(0, -1)}_`, /malformed access key: its checksum is wrong/],
    ] as const) {
      const { code, json } = await wire('/kubernetes/management/api', { key: '', headers: { authorization } })
      assert.equal(code, 401, authorization)
      assert.match(json.message, why)
      assert.equal(json.message.includes(authorization.slice(7) || 'nothing'), false, 'what was sent is not repeated')
    }
    const doubled = { authorization: [good, good] }
    assert.equal((await wire('/kubernetes/management/api', { key: '', headers: doubled })).code, 401)
    assert.equal((await wire('/kubernetes/management/api', { key: '', headers: { authorization: good } })).code, 200)
  })

  test('a key with two owners, a negative ttl, or names that only the server assigns gets 422', async () => {
    await refused(key({ user: 'ada', team: 'web' }), 422, /spec\.team: Forbidden: spec\.user is set/)
    await refused(key({ team: 'web', subject: 'x' }), 422, /spec\.subject: Forbidden/)
    await refused(key({ ttl: -1 }), 422, /spec\.ttl/)
    for (const spec of [
      { user: 'system:platform' },
      { subject: 'platform:team:web' },
      { groups: ['fine', 'system:masters'] },
      { identity: { username: 'system:x' } },
      { identity: { groups: ['platform:team:web'] } },
    ])
      await refused(key(spec), 422, /names with the prefix system: or platform: are reserved for the server/)
    await refused(key({ key: 'too short' }), 422, /32 to 4000 characters of visible ASCII/)
    await refused(key({ key: 'ü'.repeat(40) }), 422, /visible ASCII/)
  })

  test('a team with unnamed users or groups gets 422 that lists them', async () => {
    const team = (spec: object) => admin.ask('POST', teams, { metadata: { name: 'nameless' }, spec })
    await refused(
      team({ users: ['ada', ''], groups: [''] }),
      422,
      /spec\.users\[1\]: Required value: a name, spec\.groups\[0\]: Required value: a name/,
    )
    await must(team({ users: [], groups: ['dev'] }))
  })

  test('a scope with an unknown role gets 422 that lists the known roles', async () => {
    const all = /^"agent", "metrics-reader", "platform-cli"$/
    const { status, text, body } = await key({ scope: { roles: [{ role: 'root' }] } })
    assert.equal(status, 422, text)
    assert.match(body.message, /spec\.scope\.roles\[0\]\.role/)
    const told = [...body.message.matchAll(/"([a-z-]+)"/g)].map(match => `"${match[1]}"`)
    assert.match(
      told
        // The name that the key would have got may be all letters.
        .filter(word => word !== '"root"' && !word.startsWith('"key-'))
        .sort()
        .join(', '),
      all,
    )
  })

  test('a scope of a key or token with invalid names gets 422 that lists each name and the expected format', async () => {
    const scope = { clusters: [{ cluster: 'PROD!' }, { cluster: 'prod/x' }], projects: [{ project: 'Shop' }] }
    const tokens = keys.replace('ownedaccesskeys', 'directclusterendpointtokens')
    for (const path of [keys, tokens]) {
      const { status, body } = await admin.ask('POST', path, { spec: { scope } })
      assert.equal(status, 422)
      assert.deepEqual(
        body.details.causes.map((cause: { field: string }) => cause.field),
        ['spec.scope.projects[0].project', 'spec.scope.clusters[0].cluster', 'spec.scope.clusters[1].cluster'],
      )
      assert.match(body.message, /"PROD!": must be a name of lower-case letters, digits, - and \./)
    }
  })

  test('scope rules that overlap, name instances of no resource, or contain a hidden wildcard get 422', async () => {
    const of = (fields: object) => rule({ resources: [{ group: 'management.platform.sh', ...fields }] })
    const overlapping = /is covered by another entry; entries with wildcards must not overlap/
    await refused(of({ resources: ['*', 'teams'] }), 422, overlapping)
    await refused(of({ resources: ['teams/*', 'teams/status'] }), 422, overlapping)
    await refused(of({ resources: ['*/status', 'teams/status'] }), 422, overlapping)
    await refused(of({ resourceNames: ['web'] }), 422, /required with resourceNames/)
    for (const url of ['/a*', '/a/*/b', '/*/', '**'])
      await refused(rule({ nonResourceURLs: [url] }), 422, /a wildcard must be the whole last path segment/)
    await refused(rule({ requestTargets: ['Moon'] }), 422, /requestTargets/)
    const fine = {
      resources: [{ resources: ['teams', 'teams/status', '*/history'] }],
      nonResourceURLs: ['/apis/*', '*'],
    }
    assert.equal((await rule(fine)).status, 201)
  })

  test('access entries without verbs, with create, or for all teams get 422', async () => {
    const shared = (entry: object) =>
      admin.ask('POST', secrets(), { metadata: { name: 'x' }, spec: { access: [entry] } })
    await refused(shared({ users: ['ada'] }), 422, /spec\.access\[0\]\.verbs: Required value/)
    await refused(shared({ verbs: ['create'], users: ['ada'] }), 422, /create cannot be granted on a single object/)
    await refused(shared({ verbs: ['get'], teams: ['*'] }), 422, /must be team names/)
    const owner = { user: 'ada', team: 'web' }
    await refused(
      admin.ask('POST', teams, { metadata: { name: 'x' }, spec: { owner } }),
      422,
      /an object has one owner/,
    )
  })

  test('roles and bindings that Kubernetes rejects get 422', async () => {
    const role = (fields: object) =>
      admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'x' }, rules: [fields] })
    await refused(role({ apiGroups: [''], resources: ['x'], verbs: [] }), 422, /verbs must contain at least one value/)
    await refused(role({ verbs: ['get'], resources: ['x'] }), 422, /at least one api group/)
    await refused(role({ verbs: ['get'], apiGroups: [''] }), 422, /at least one resource/)
    await refused(role({ verbs: ['get'], nonResourceURLs: ['/a*'] }), 422, /whole last path segment/)
    await refused(
      role({ verbs: ['get'], apiGroups: [''], resources: ['x'], nonResourceURLs: ['/a'] }),
      422,
      /both regular resources and non-resource URLs/,
    )
  })
})
