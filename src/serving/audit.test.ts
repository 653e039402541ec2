// Audit events: their content, that denials and issuance are always recorded, and that secrets never are.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuMilliseconds } from '../../test/support/cpu-time.ts'
import type { Caller } from '../api/caller.ts'
import { forbiddenPath, unauthorized, unknownPath } from '../api/errors.ts'
import { defineKind, type Question } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { documentOf } from '../api/resources.ts'
import { mapOf, struct, text } from '../api/schema.ts'
import { openAudit } from './audit.ts'
import { microTime } from './audit-event.ts'
import { defaultPolicy, type Policy } from './audit-policy.ts'
import { hashWith } from './audit-redact.ts'
import type { Exchange } from './exchange.ts'

const hash = hashWith(Buffer.alloc(32, 1))
const ours = 'management.platform.sh'
const Secret = defineKind({
  kind: 'SharedSecret',
  plural: 'sharedsecrets',
  singular: 'sharedsecret',
  namespaced: true,
  description: '',
  spec: struct('', { displayName: text(''), data: mapOf(text(''), '') }),
  sealed: ['spec.data'],
  sample: {},
})
const ada: Caller = { username: 'ada', groups: ['system:authenticated'], key: 'ci', uid: 'u1', extra: { a: ['b'] } }

function exchangeOf(url: string, headers: { [name: string]: string } = { authorization: 'Bearer x' }): Exchange {
  const request = { url, headers: { 'user-agent': 'kubectl/v1.36', ...headers }, socket: { remoteAddress: '10.0.0.1' } }
  const mark = url.indexOf('?')
  const exchange = {
    request,
    response: {},
    method: 'GET',
    path: mark === -1 ? url : url.slice(0, mark),
    query: new URLSearchParams(),
    auditId: 'id-1',
    warnings: new Set(),
  }
  return exchange as unknown as Exchange
}

function open(policy: Policy, failure?: string) {
  const lines: string[] = []
  let time = Date.parse('2026-01-31T12:00:00Z')
  let counted = 0
  const audit = openAudit({
    policy,
    hash,
    sink: {
      write: line => lines.push(line) > 0,
      failure,
      flush: async () => {},
      settled: async () => failure === undefined,
      close: async () => {},
    },
    now: () => {
      time += 1.5
      return time
    },
    sourcesOf: request => [request.socket.remoteAddress ?? ''],
    counted: events => {
      counted += events
    },
  })
  return { audit, lines, events: () => lines.map(line => JSON.parse(line)), counted: () => counted }
}
const on = (verb: string, resource: string, more: object = {}): Question => ({
  verb,
  target: { group: ours, resource, namespace: '', ...more },
})
const everything = (level: Policy['rules'][number]['level']): Policy => ({ rules: [{ level }] })

test('an event has the fields of audit.k8s.io/v1, and none that is empty', () => {
  const { audit, events } = open(everything('Metadata'))
  const exchange = exchangeOf('/kubernetes/management/apis/x?limit=5')
  const context = audit.begin(exchange, on('create', 'sharedsecrets', { namespace: 'ns' }), ada)
  context.kind = Secret
  context.allowed = true
  context.reason = 'by role a'
  context.sent = { metadata: { name: 'reg', resourceVersion: '7' }, spec: { data: { p: 'CANARY' } } }
  const object = { apiVersion: 'v1', kind: 'SharedSecret', metadata: { name: 'reg', uid: 'u-9' } } as Resource
  context.answer = { document: documentOf(object) }
  audit.complete(context, 201, undefined)
  const [first, last] = events()
  assert.equal(first.stage, 'RequestReceived')
  assert.equal(first.responseStatus, undefined)
  assert.deepEqual(last, {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: 'id-1',
    stage: 'ResponseComplete',
    requestURI: '/kubernetes/management/apis/x?limit=5',
    verb: 'create',
    user: { username: 'ada', uid: 'u1', groups: ['system:authenticated'], extra: { a: ['b'] } },
    sourceIPs: ['10.0.0.1'],
    userAgent: 'kubectl/v1.36',
    objectRef: {
      resource: 'sharedsecrets',
      namespace: 'ns',
      name: 'reg',
      uid: 'u-9',
      apiGroup: ours,
      apiVersion: 'v1',
      resourceVersion: '7',
    },
    responseStatus: { metadata: {}, code: 201 },
    requestReceivedTimestamp: '2026-01-31T12:00:00.001500Z',
    stageTimestamp: '2026-01-31T12:00:00.003000Z',
    annotations: {
      'authorization.k8s.io/decision': 'allow',
      'authorization.k8s.io/reason': 'by role a',
      'platform.sh/access-key': 'ci',
    },
  })
})

test('a watch is recorded when it starts and when it ends; a bug as Panic, without its message', () => {
  const { audit, events } = open({ ...everything('Metadata'), omitStages: ['RequestReceived'] })
  const watch = audit.begin(exchangeOf('/w'), on('watch', 'teams'), ada)
  audit.started(watch, 200)
  audit.complete(watch, 200, undefined)
  audit.complete(audit.begin(exchangeOf('/p'), on('get', 'teams'), ada), 500, new Error('CANARY'))
  assert.deepEqual(
    events().map(event => event.stage),
    ['ResponseStarted', 'ResponseComplete', 'Panic'],
  )
  assert.equal(JSON.stringify(events()).includes('CANARY'), false)
})

test('denials are recorded whatever the policy says, with decision and reason', () => {
  const { audit, events } = open({ rules: [{ level: 'None', omitStages: ['ResponseComplete'] }] })
  const context = audit.begin(exchangeOf('/a'), on('get', 'teams', { name: 'a' }), ada)
  context.allowed = false
  context.reason = 'the scope does not cover it'
  audit.complete(context, 403, forbiddenPath('no'))
  const [event] = events()
  assert.equal(event.level, 'Metadata')
  assert.equal(event.annotations['authorization.k8s.io/decision'], 'forbid')
  assert.equal(event.annotations['authorization.k8s.io/reason'], 'the scope does not cover it')
  assert.deepEqual(event.responseStatus, {
    metadata: {},
    status: 'Failure',
    code: 403,
    message: 'forbidden: no',
    reason: 'Forbidden',
  })
})

test('a denial with the response of a missing object is recorded as a denial', () => {
  const { audit, events } = open({ rules: [{ level: 'None' }] })
  const context = audit.begin(exchangeOf('/a'), on('get', 'ownedaccesskeys', { name: 'a' }), ada)
  context.allowed = false
  audit.complete(context, 404, unknownPath())
  assert.equal(events()[0].annotations['authorization.k8s.io/decision'], 'forbid')
  assert.equal(events()[0].responseStatus.code, 404)
})

test('an unknown key is recorded by its hash, without user; no key is system:anonymous', () => {
  const { audit, lines, events } = open(defaultPolicy)
  const key = `plat_${'x'.repeat(49)}`
  const question = on('get', 'teams')
  audit.complete(
    audit.begin(exchangeOf(`/a?k=${key}`, { authorization: `Bearer ${key}` }), question, undefined),
    401,
    unauthorized(),
  )
  audit.complete(audit.begin(exchangeOf('/a', {}), question, undefined), 401, unauthorized())
  const [unknown, nobody] = events()
  assert.deepEqual(unknown.user, {})
  assert.equal(unknown.annotations['platform.sh/presented-key'], hash(key))
  assert.equal(nobody.user.username, 'system:anonymous')
  assert.equal(lines.join().includes(key), false)
})

test('issuance of keys and tokens is recorded whatever the policy says, with the issued object and never the secret', () => {
  const { audit, lines, events } = open({ rules: [{ level: 'None' }] })
  const key = `plat_${'K'.repeat(49)}`
  const created = audit.begin(exchangeOf('/k'), on('create', 'ownedaccesskeys'), ada)
  const metadata = { name: 'key-abc' }
  created.answer = { document: documentOf({ apiVersion: 'v1', kind: 'OwnedAccessKey', metadata, spec: { key } }) }
  audit.complete(created, 201, undefined)
  const scope = { clusters: [{ cluster: 'prod' }] }
  const claims = Buffer.from(JSON.stringify({ jti: 'jti-1', 'platform.sh': { scope } })).toString('base64url')
  const token = `eyJhbGciOiJFUzI1NiJ9.${claims}.c2lnbmF0dXJl`
  const minted = audit.begin(exchangeOf('/t'), on('create', 'directclusterendpointtokens'), ada)
  minted.answer = { document: documentOf({ apiVersion: 'v1', kind: 'T', metadata: {}, status: { token } }) }
  audit.complete(minted, 201, undefined)
  audit.complete(audit.begin(exchangeOf('/k'), on('patch', 'ownedaccesskeys', { name: 'k' }), ada), 200, undefined)
  audit.complete(audit.begin(exchangeOf('/k'), on('get', 'ownedaccesskeys', { name: 'k' }), ada), 200, undefined)
  const [one, two, three, ...rest] = events()
  assert.deepEqual(
    [one.annotations['platform.sh/issued'], one.annotations['platform.sh/issued-key']],
    ['key-abc', hash(key)],
  )
  assert.equal(one.objectRef.name, 'key-abc')
  assert.equal(two.annotations['platform.sh/issued'], 'jti-1')
  assert.equal(two.annotations['platform.sh/issued-scope'], JSON.stringify(scope))
  assert.equal(three.verb, 'patch')
  assert.equal(three.annotations['platform.sh/issued'], undefined)
  assert.equal(rest.length, 0)
  for (const secret of [key, token, 'c2lnbmF0dXJl']) assert.equal(lines.join().includes(secret), false)
})

test('objects are recorded at Request and RequestResponse, with hashes in place of secrets, lists included', () => {
  const { audit, lines, events } = open({
    rules: [{ level: 'RequestResponse', omitManagedFields: true }],
    omitStages: ['RequestReceived'],
  })
  const metadata = { name: 'a', managedFields: [{ manager: 'm' }] }
  const object: Resource = {
    apiVersion: Secret.apiVersion,
    kind: 'SharedSecret',
    metadata,
    spec: { displayName: 'A', data: { p: 'CANARY' } },
  }
  const put = audit.begin(exchangeOf('/a'), on('update', 'sharedsecrets', { name: 'a' }), ada)
  put.kind = Secret
  put.sent = object as never
  put.answer = { document: documentOf(object) }
  audit.complete(put, 200, undefined)
  const patch = audit.begin(exchangeOf('/a'), on('patch', 'sharedsecrets', { name: 'a' }), ada)
  patch.kind = Secret
  patch.sent = [{ op: 'replace', path: '/spec/data/p', value: 'CANARY' }]
  patch.sentAs = 'json-patch'
  audit.complete(patch, 200, undefined)
  const list = audit.begin(exchangeOf('/a'), on('list', 'sharedsecrets'), ada)
  list.kind = Secret
  list.answer = { list: { items: [documentOf(object)], resourceVersion: '5' } }
  audit.complete(list, 200, undefined)
  const [one, two, three] = events()
  assert.deepEqual(one.requestObject.spec, { displayName: 'A', data: { p: hash('CANARY') } })
  assert.deepEqual(one.responseObject.metadata, { name: 'a' })
  assert.equal(two.requestObject[0].value, hash('CANARY'))
  assert.equal(three.responseObject.kind, 'SharedSecretList')
  assert.equal(three.responseObject.items[0].spec.data.p, hash('CANARY'))
  assert.equal(lines.join().includes('CANARY'), false)
})

test('at Request the response is omitted; for an unknown kind so is the body', () => {
  const { audit, events } = open({ ...everything('Request'), omitStages: ['RequestReceived'] })
  const known = audit.begin(exchangeOf('/a'), on('create', 'sharedsecrets'), ada)
  known.kind = Secret
  known.sent = { spec: {} }
  known.answer = { document: documentOf({ apiVersion: 'v1', kind: 'SharedSecret', metadata: {} }) }
  audit.complete(known, 201, undefined)
  const strange = audit.begin(exchangeOf('/a'), on('create', 'strange'), ada)
  strange.sent = { password: 'CANARY' }
  audit.complete(strange, 404, unauthorized())
  assert.ok(events()[0].requestObject)
  assert.equal(events()[0].responseObject, undefined)
  assert.equal(events()[1].requestObject, undefined)
})

test('client input in records is bounded', () => {
  const { audit, events } = open(everything('Metadata'))
  audit.begin(
    exchangeOf(`/${'a'.repeat(10_000)}`, { 'user-agent': 'b'.repeat(10_000) }),
    { verb: 'get', path: '/' },
    ada,
  )
  assert.ok(events()[0].requestURI.length < 4200)
  assert.ok(events()[0].userAgent.length < 1100)
})

test('impersonation is recorded with the real user; failures of the log are reported', () => {
  const { audit, events } = open(everything('Metadata'), 'disk full')
  const context = audit.begin(exchangeOf('/a'), on('get', 'teams'), ada)
  context.impersonated = { username: 'eve', groups: [] }
  audit.complete(context, 200, undefined)
  assert.equal(events()[1].user.username, 'ada')
  assert.equal(events()[1].impersonatedUser.username, 'eve')
  assert.equal(audit.failure, 'disk full')
})

test('a hundred thousand unrecorded requests cost almost nothing', () => {
  const { audit, lines, counted } = open(defaultPolicy)
  const exchange = exchangeOf('/a')
  const question = on('get', 'teams', { name: 'a' })
  const round = (count: number) => {
    for (let n = 0; n < count; n++) audit.complete(audit.begin(exchange, question, ada), 200, undefined)
  }
  round(10_000)
  const used = cpuMilliseconds(() => round(100_000))
  assert.ok(used < 500, `${used} ms`)
  assert.equal(lines.length + counted(), 0)
})

test('timestamps have microseconds', () => {
  for (const at of [0, 1, 999.999, 1000, 1794737810241.5, 1794737810007.001, 951782400000])
    assert.equal(
      microTime(at),
      `${new Date(Math.floor(at)).toISOString().slice(0, 23)}${String(Math.floor((at - Math.floor(at)) * 1000)).padStart(3, '0')}Z`,
    )
})
