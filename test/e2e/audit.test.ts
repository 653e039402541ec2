// The audit log of the real program: what it says of whom, what a policy makes of it, and what happens when it cannot be written.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const ours = '/apis/management.platform.sh/v1'
const [teams, keys] = [`${ours}/teams`, `${ours}/ownedaccesskeys`]
const secrets = `${ours}/namespaces/default/sharedsecrets`

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever is there
type Event = any
/** Whole lines: the last one may be being written. */
const allIn = (file: string): Event[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line))

/** Waits until the log has an event like this; the log is written off the request's path. */
async function find(server: Server, what: string, isIt: (event: Event) => boolean): Promise<Event> {
  const until = Date.now() + 30_000
  for (;;) {
    const file = join(server.directory, 'audit.log')
    // While it is rotated there is none for a moment.
    const found = existsSync(file) ? allIn(file).find(isIt) : undefined
    if (found) return found
    assert.ok(Date.now() < until, `not in the audit log: ${what}`)
    await server.request('GET', '/version')
  }
}
const about = (verb: string, resource: string, name: string) => (event: Event) =>
  event.verb === verb && event.objectRef?.resource === resource && event.objectRef.name === name
const annotation = (event: Event, name: string) => event.annotations?.[name]

describe('under the default policy', () => {
  let server: Server
  let ada: string
  before(async () => {
    server = await startServer({ storage: 'memory' })
    ada = (await server.request('POST', keys, { body: { metadata: { name: 'ada' }, spec: { user: 'ada' } } })).body.spec
      .key
  })
  after(() => server.stop())
  const decision = (event: Event) => [
    annotation(event, 'authorization.k8s.io/decision'),
    annotation(event, 'authorization.k8s.io/reason'),
  ]

  test('a write is recorded: user, key, object, and why it was allowed', async () => {
    const made = await server.request('POST', teams, { body: { metadata: { name: 'web' } } })
    const event = await find(server, 'the create', about('create', 'teams', 'web'))
    assert.deepEqual(
      [event.apiVersion, event.kind, event.level, event.stage, event.user.username, event.responseStatus.code],
      ['audit.k8s.io/v1', 'Event', 'Metadata', 'ResponseComplete', 'admin', 201],
    )
    assert.equal(event.auditID, made.headers['audit-id'])
    assert.equal(event.objectRef.uid, made.body.metadata.uid)
    assert.equal(annotation(event, 'platform.sh/access-key'), 'admin')
    assert.deepEqual(decision(event), [
      'allow',
      'allowed by ClusterRoleBinding platform-admin of ClusterRole platform-admin to user admin',
    ])
    assert.equal(event.requestObject, undefined)
  })

  test('denials, reads of secrets and unknown keys are recorded', async () => {
    await server.request('GET', `${teams}/web`, { key: ada })
    const denied = await find(
      server,
      'the denial',
      event => about('get', 'teams', 'web')(event) && event.user.username === 'ada',
    )
    assert.equal(denied.responseStatus.code, 403)
    assert.deepEqual(decision(denied), ['forbid', ''])
    await server.request('GET', teams, { key: `plat_${'0'.repeat(49)}` })
    const unknown = await find(server, 'the unknown key', event => event.responseStatus?.code === 401)
    assert.match(annotation(unknown, 'platform.sh/presented-key'), /^hmac-sha256:/)
  })

  test('issuance is recorded with a hash of the key, including the first key; so are the server’s own writes', async () => {
    const event = await find(server, 'the key of ada', about('create', 'ownedaccesskeys', 'ada'))
    assert.equal(annotation(event, 'platform.sh/issued'), 'ada')
    const first = await find(server, 'the first key', about('create', 'ownedaccesskeys', 'admin'))
    assert.deepEqual([first.user.username, ...decision(first)], ['system:platform', 'allow', 'the server itself'])
    for (const [key, issued] of [
      [ada, event],
      [server.adminKey, first],
    ] as const) {
      const { stdout } = spawnSync(process.execPath, [program, 'audit', 'hash', '--data', server.directory], {
        input: key,
        encoding: 'utf8',
      })
      assert.ok(stdout.includes(annotation(issued, 'platform.sh/issued-key')), stdout)
    }
    const mirror = await find(server, 'a built-in role', about('create', 'clusterroles', 'platform-viewer'))
    assert.equal(mirror.userAgent, 'platform')
  })

  test('reads of secrets are recorded, other reads and reviews are not, and no secret is logged', async () => {
    const data = { password: Buffer.from('correct horse battery staple').toString('base64') }
    await server.request('POST', secrets, { body: { metadata: { name: 'db' }, spec: { data } } })
    await server.request('GET', `${secrets}/db`)
    await server.request('GET', secrets)
    await server.request('GET', `${teams}/web`)
    await server.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {} })
    await find(server, 'the get', about('get', 'sharedsecrets', 'db'))
    await find(server, 'the list', event => event.verb === 'list' && event.objectRef?.resource === 'sharedsecrets')
    const log = readFileSync(join(server.directory, 'audit.log'), 'utf8')
    const events = allIn(join(server.directory, 'audit.log'))
    assert.equal(
      events.some(event => about('get', 'teams', 'web')(event) && event.user.username === 'admin'),
      false,
    )
    assert.equal(
      events.some(event => event.objectRef?.resource === 'selfsubjectreviews'),
      false,
    )
    for (const secret of [data.password, 'correct horse', ada, server.adminKey])
      assert.equal(log.includes(secret), false)
  })

  test('a rejected key is recorded with its name and its user, an unknown one with neither', async () => {
    const make = async (name: string, spec: object) =>
      (await server.request('POST', keys, { body: { metadata: { name }, spec: { user: `user-${name}`, ...spec } } }))
        .body.spec.key as string
    const made: { [name: string]: string } = {}
    for (const [name, spec] of Object.entries({ off: {}, late: { ttl: 1 }, gone: {}, turned: {} }))
      made[name] = await make(name, spec)
    const merge = { 'content-type': 'application/merge-patch+json' }
    await server.request('PATCH', `${keys}/off`, { headers: merge, body: { spec: { disabled: true } } })
    await server.request('DELETE', `${keys}/gone`)
    await server.request('POST', `${keys}/turned/rotate`, { body: { spec: { overlap: 0 } } })
    const rejected = async (name: string, key: string) => {
      let auditId: string | undefined
      for (const until = Date.now() + 30_000; auditId === undefined; ) {
        const { status, headers } = await server.request('GET', `${teams}/${name}`, { key })
        if (status === 401) auditId = headers['audit-id'] as string
        assert.ok(Date.now() < until, name)
      }
      const event = await find(server, name, one => one.auditID === auditId)
      return [event.user, annotation(event, 'platform.sh/rejected-key'), annotation(event, 'platform.sh/rejected-user')]
    }
    for (const [name, key] of Object.entries(made))
      assert.deepEqual(await rejected(name, key), [{}, name, `user-${name}`])
    const direct = await server.request('POST', `${ours}/directclusterendpointtokens`, { key: ada, body: { spec: {} } })
    assert.deepEqual(await rejected('direct', direct.body.status.token), [{}, undefined, 'ada'])
    assert.deepEqual(await rejected('unknown', `plat_${'1'.repeat(49)}`), [{}, undefined, undefined])
    const log = readFileSync(join(server.directory, 'audit.log'), 'utf8')
    for (const key of Object.values(made)) assert.equal(log.includes(key), false)
  })

  test('impersonation is recorded with both names', async () => {
    await server.request('DELETE', `${teams}/web`, { headers: { 'impersonate-user': 'ada' } })
    const event = await find(server, 'the delete', about('delete', 'teams', 'web'))
    assert.deepEqual([event.user.username, event.impersonatedUser.username], ['admin', 'ada'])
  })
})

test('the first matching rule of a policy decides: levels, stages, and bodies with hashed secrets', async t => {
  const place = mkdtempSync(join(tmpdir(), 'platform-policy-'))
  const file = join(place, 'policy.yaml')
  writeFileSync(
    file,
    `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  resources: [{group: management.platform.sh, resources: [teams], resourceNames: [quiet]}]
- level: Request
  resources: [{group: management.platform.sh, resources: [teams]}]
  omitStages: [Panic]
- level: RequestResponse
  resources: [{group: management.platform.sh, resources: [sharedsecrets]}]
- level: Metadata
  verbs: [get]
  nonResourceURLs: [/version]
`,
  )
  const server = await startServer({ storage: 'memory', args: ['--audit-policy', file] })
  t.after(async () => {
    await server.stop()
    rmSync(place, { recursive: true })
  })
  const data = { password: Buffer.from('correct horse').toString('base64') }
  for (const name of ['quiet', 'loud']) {
    await server.request('POST', teams, { body: { metadata: { name }, spec: { displayName: name } } })
    await server.request('GET', `${teams}/${name}`)
  }
  await server.request('POST', secrets, { body: { metadata: { name: 'db' }, spec: { data } } })
  const made = await find(server, 'the secret', about('create', 'sharedsecrets', 'db'))
  assert.match(made.requestObject.spec.data.password, /^hmac-sha256:/)
  assert.equal(made.responseObject.spec.data.password, made.requestObject.spec.data.password)
  const hashed = spawnSync(process.execPath, [program, 'audit', 'hash', '--data', server.directory], {
    input: 'correct horse\n',
    encoding: 'utf8',
  })
  assert.ok(hashed.stdout.includes(made.requestObject.spec.data.password), hashed.stdout)
  await find(server, '/version', event => event.requestURI.endsWith('/version'))
  const events = allIn(join(server.directory, 'audit.log'))
  assert.equal(events.some(about('get', 'teams', 'quiet')), false)
  // The create has no name yet that a rule could go by.
  const loud = events.filter(event => event.objectRef?.resource === 'teams')
  assert.deepEqual(
    loud.map(({ verb, level, stage, requestObject }) => [verb, level, stage, requestObject?.spec.displayName]),
    [
      ['create', 'Request', 'ResponseComplete', 'quiet'],
      ['create', 'Request', 'ResponseComplete', 'loud'],
      ['get', 'Request', 'ResponseComplete', undefined],
    ],
  )
})

test('the log is rotated by size, loses no line, and keeps the configured number of old files', async t => {
  const place = mkdtempSync(join(tmpdir(), 'platform-policy-'))
  const file = join(place, 'policy.yaml')
  writeFileSync(
    file,
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request}]\nomitStages: [RequestReceived]\n',
  )
  const args = ['--audit-policy', file, '--audit-max-size', '1', '--audit-max-files', '2']
  const server = await startServer({ storage: 'memory', args })
  t.after(async () => {
    await server.stop()
    rmSync(place, { recursive: true })
  })
  const description = 'x'.repeat(200_000)
  for (let index = 0; index < 20; index++)
    await server.request('POST', teams, { body: { metadata: { name: `t-${index}` }, spec: { description } } })
  await find(server, 'the last one', about('create', 'teams', 't-19'))
  const files = readdirSync(server.directory)
    .filter(name => /^audit.*\.log$/.test(name))
    .sort()
  assert.equal(files.length, 3, files.join(' '))
  const names = files.flatMap(name =>
    allIn(join(server.directory, name)).flatMap(event =>
      event.objectRef?.resource === 'teams' ? [event.objectRef.name] : [],
    ),
  )
  assert.deepEqual(names, Array.from({ length: 20 }, (_, index) => `t-${index}`).slice(-names.length))
})

test('with audit.refuseWrites nothing changes while the log cannot be written, and acknowledged writes are recorded', async t => {
  const server = await startServer({ args: ['--audit-refuse-writes'] })
  t.after(() => server.stop())
  const log = join(server.directory, 'audit.log')
  const make = (name: string) => server.request('POST', teams, { body: { metadata: { name } } })
  const stagesOf = (name: string) =>
    allIn(log)
      .filter(event => JSON.stringify(event).includes(`"${name}"`))
      .map(({ stage }) => stage)
  // Without a wait: the answer to a write comes after its line.
  for (let index = 0; index < 20; index++) {
    assert.equal((await make(`on-record-${index}`)).status, 201)
    assert.deepEqual(stagesOf(`on-record-${index}`), ['ResponseComplete'])
  }
  assert.equal(allIn(log).filter(event => event.stage === 'RequestReceived').length, 20)
  renameSync(log, `${log}.aside`)
  mkdirSync(log) // permission to write everything does not include this
  const refused = await make('unheard')
  assert.equal(refused.status, 503, refused.text)
  assert.match(refused.body.message, /the audit log is not writable, so writes are rejected; retry later/)
  assert.equal((await server.request('GET', `${teams}/unheard`)).status, 404)
  assert.equal((await make('unheard')).status, 503)
  const review = { spec: { resourceAttributes: { verb: 'get', resource: 'teams' } } }
  const asked = await server.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { body: review })
  assert.equal(asked.status, 201, 'what changes nothing and leaves no line is answered')
  const dead = await server.request('DELETE', `${keys}/admin`)
  assert.equal(dead.status, 503)
  rmdirSync(log)
  const until = Date.now() + 30_000
  while ((await make('heard')).status !== 201) assert.ok(Date.now() < until, 'writes are taken again')
  assert.deepEqual(stagesOf('heard').at(-1), 'ResponseComplete')
  // The rejected write is reported afterwards.
  assert.ok(allIn(log).some(event => event.verb === 'create' && event.responseStatus?.code === 503))
})

test('a key created by `platform admin reset` is recorded', async t => {
  const server = await startServer()
  t.after(() => server.stop())
  await server.restart(async () => {
    const reset = spawnSync(process.execPath, [program, 'admin', 'reset', '--data', server.directory], {
      encoding: 'utf8',
    })
    assert.equal(reset.status, 0, reset.stderr)
  })
  const isNew = (event: Event) =>
    /^admin-/.test(event.objectRef?.name) && event.objectRef.resource === 'ownedaccesskeys'
  const event = await find(server, 'the new key', isNew)
  assert.deepEqual([event.verb, event.user.username], ['create', 'system:platform'])
  assert.match(annotation(event, 'platform.sh/issued-key'), /^hmac-sha256:/)
})
