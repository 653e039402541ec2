// The audit log never shows a secret, but a hash that identifies a known one.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { defineKind } from '../api/kind.ts'
import type { Json } from '../api/object.ts'
import { flag, integer, list, mapOf, oneOf, struct, text } from '../api/schema.ts'
import { hashWhole, hashWith, protectionOf, redact, redactPatch, saltIn, scrub } from './audit-redact.ts'
import { cleanUri } from './audit-uri.ts'

const salt = Buffer.alloc(32, 7)
const hash = hashWith(salt)
const Secret = defineKind({
  kind: 'Secret',
  plural: 'secrets',
  singular: 'secret',
  namespaced: true,
  description: '',
  spec: struct('', {
    displayName: text(''),
    size: integer(''),
    data: mapOf(text(''), ''),
    access: list(struct('', { name: text('') }), ''),
    login: struct('', { token: text('') }),
    logins: list(struct('', { name: text(''), password: text('') }), ''),
  }),
  sealed: ['spec.data'],
  hidden: ['spec.login.token', 'spec.logins.password'],
  sample: {},
})
const shown = (object: Json) => redact(object, protectionOf(Secret), hash)

test('a value becomes an HMAC-SHA-256 under the salt', () => {
  assert.equal(hash('hunter2'), `hmac-sha256:${createHmac('sha256', salt).update('hunter2').digest('hex')}`)
  assert.notEqual(hashWith(Buffer.alloc(32, 8))('hunter2'), hash('hunter2'))
})

test('every value of a protected map is hashed, keys and everything else stay', () => {
  const object = { kind: 'Secret', metadata: { name: 'a' }, spec: { displayName: 'A', data: { one: 'x', two: 'y' } } }
  assert.deepEqual(JSON.parse(JSON.stringify(shown(object))), {
    ...object,
    spec: { displayName: 'A', data: { one: hash('x'), two: hash('y') } },
  })
})

test('numbers, lists and text in place of the secret are hashed as well', () => {
  assert.equal(JSON.stringify(shown({ spec: { data: { pin: 4711 } } })).includes('4711'), false)
  assert.equal(JSON.stringify(shown({ spec: { data: ['hunter2'] } })).includes('hunter2'), false)
  for (const spec of ['hunter2', ['hunter2'], { data: 'hunter2' }, { login: 'hunter2' }, { login: ['hunter2'] }])
    assert.equal(JSON.stringify(shown({ spec })).includes('hunter2'), false, JSON.stringify(spec))
})

test('an unknown field may be a typo, and is hashed', () => {
  for (const object of [
    { spec: { stringData: { p: 'hunter2' } } },
    { stringData: { p: 'hunter2' } },
    { data: 'hunter2' },
  ])
    assert.equal(JSON.stringify(shown(object)).includes('hunter2'), false)
  assert.match(
    JSON.stringify(shown({ spec: { access: [{ name: 'ada', names: 'hunter2' }] } })),
    /"name":"ada","names":"hmac/,
  )
})

const Open = defineKind({
  kind: 'Open',
  plural: 'opens',
  singular: 'open',
  namespaced: false,
  description: '',
  spec: struct('', { key: text(''), token: text(''), name: text(''), mode: oneOf(['on', 'off'], ''), old: flag('') }),
  status: struct('', { token: text('') }),
  sample: {},
})
const shownOpen = (object: Json) => redact(object, protectionOf(Open), hash)

test('a kind without secret fields shows the fields of its schema, and nothing else', () => {
  const object = {
    apiVersion: 'management.platform.sh/v1',
    kind: 'Open',
    metadata: { name: 'a', generation: 2, labels: { a: 'b' }, ownerReferences: [{ uid: 'u', controller: true }] },
    spec: { name: 'n', mode: 'on', old: false },
  }
  assert.deepEqual(JSON.parse(JSON.stringify(shownOpen(object))), object)
  for (const wrong of [
    { data: { p: 'hunter2' } },
    { spec: { data: 'hunter2' } },
    { spec: 'hunter2' },
    { spec: ['hunter2'] },
    { spec: { name: ['hunter2'] } },
    { spec: { name: { first: 'hunter2' } } },
    { spec: { mode: 'hunter2' } },
    { spec: { old: 'hunter2' } },
    { metadata: 'hunter2' },
    { metadata: { password: 'hunter2' } },
    { metadata: { generation: 'hunter2' } },
    { metadata: { labels: { a: ['hunter2'] } } },
    { metadata: { labels: 'hunter2' } },
    { metadata: { finalizers: { a: 'hunter2' } } },
    { metadata: { ownerReferences: [{ uid: 'u', password: 'hunter2' }, 'hunter2'] } },
    { metadata: { managedFields: [{ fieldsV1: { 'f:spec': { 'f:name': 'hunter2' } } }] } },
  ])
    assert.equal(JSON.stringify(shownOpen(wrong)).includes('hunter2'), false, JSON.stringify(wrong))
})

test('the fields in managedFields are shown', () => {
  const metadata = { managedFields: [{ manager: 'm', fieldsV1: { 'f:spec': { '.': {}, 'f:name': {} } } }] }
  assert.deepEqual(JSON.parse(JSON.stringify(shownOpen({ metadata }))), { metadata })
})

test('the last-applied annotation is hashed as a whole, and so are keys and tokens anywhere', () => {
  const annotations = {
    'kubectl.kubernetes.io/last-applied-configuration': '{"spec":{"data":{"p":"hunter2"}}}',
    other: 'x',
  }
  const object = { metadata: { annotations }, spec: { key: 'mine', token: 't', name: 'n' }, status: { token: 'u' } }
  const text = JSON.stringify(shownOpen(object))
  for (const secret of ['hunter2', '"mine"', '"t"', '"u"']) assert.equal(text.includes(secret), false, secret)
  assert.match(text, /"other":"x"/)
  assert.match(text, /"name":"n"/)
})

test('the pointers of a JSON Patch decide how its values are redacted', () => {
  const patch = [
    { op: 'add', path: '/spec/data/p', value: 'hunter2' },
    { op: 'replace', path: '/spec/data', value: { p: 'hunter2' } },
    { op: 'test', path: '/spec', value: { displayName: 'seen', data: { p: 'hunter2' } } },
    { op: 'add', path: '', value: { spec: { data: { p: 'hunter2' } } } },
    { op: 'add', path: '/spec/dta/p', value: 'hunter2' },
    { op: 'add', path: '/spec/login~1token', value: 'hunter2' },
    { op: 'add', path: 7, value: 'hunter2' },
    { op: 'add', path: 'hunter2', value: 'hunter2' },
    { op: 'add', path: { to: 'hunter2' }, from: ['hunter2'], value: 'hunter2' },
    { op: 'hunter2', path: '/spec/displayName' },
    { op: 'add', path: '/spec/displayName', vlaue: 'hunter2' },
    { op: 'add', path: '/spec/displayName/first', value: 'hunter2' },
    { op: 'add', path: '/spec/size', value: 'hunter2' },
    { op: 'add', path: '/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration', value: 'hunter2' },
    { op: 'add', path: '/spec/access/-', value: { name: 'seen', more: 'hunter2' } },
    { op: 'add', path: '/spec/access/0/more', value: 'hunter2' },
    { op: 'add', path: '/spec/access/0/name', value: 'seen' },
    'hunter2',
  ]
  const text = JSON.stringify(redactPatch(patch, protectionOf(Secret), hash))
  assert.equal(text.includes('hunter2'), false, text)
  assert.equal(text.split('seen').length, 4, text)
  assert.match(text, /"path":"\/spec\/data\/p"/)
})

test('paths lead through lists', () => {
  assert.match(
    JSON.stringify(shown({ spec: { logins: [{ password: 'hunter2', name: 'n' }] } })),
    /"password":"hmac-.*"name":"n"/,
  )
  const patch = [{ op: 'add', path: '/spec/logins/0/password', value: 'hunter2' }]
  assert.equal(JSON.stringify(redactPatch(patch, protectionOf(Secret), hash)).includes('hunter2'), false)
})

test('a body of another type is one hash, which can be searched', () => {
  assert.equal(hashWhole('hunter2', hash), hash('hunter2'))
  assert.equal(hashWhole([{ hunter2: 1 }], hash), hash('[{"hunter2":1}]'))
  assert.equal(hashWhole(null, hash), null)
})

test('a URI keeps its path and the known parameters unchanged', () => {
  for (const uri of [
    '/a/b',
    '/a?',
    '/a?limit=5&labelSelector=a%3Db',
    '/a?watch',
    '/a?watch=1&&limit=',
    '/a%20b?limit=%',
  ])
    assert.equal(cleanUri(uri, hash), uri)
  assert.equal(cleanUri('/a?limit=5&token=hunter2', hash), `/a?limit=5&token=${hash('hunter2')}`)
  assert.equal(cleanUri('/a?token=hunter%32+x', hash), `/a?token=${hash('hunter2 x')}`)
  assert.equal(cleanUri('/a?hunter2', hash), `/a?${hash('hunter2')}`)
  assert.equal(cleanUri('/a?x=a=b', hash), `/a?x=${hash('a=b')}`)
  const key = `plat_${'a1B'.repeat(16)}z`
  const encoded = key.replace('_', '%5F')
  assert.equal(cleanUri(`/a/${encoded}/b?fieldManager=${encoded}`, hash), `/a/${hash(key)}/b?fieldManager=${hash(key)}`)
})

test('keys and tokens in other text are removed', () => {
  const key = `plat_${'a1B'.repeat(16)}z`
  const token = `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(40)}.${'c'.repeat(40)}`
  assert.equal(scrub(`/a?x=${key}&y=1`, hash), `/a?x=${hash(key)}&y=1`)
  assert.equal(scrub(`Bearer ${token}`, hash), `Bearer ${hash(token)}`)
  assert.match(JSON.stringify(shown({ spec: { displayName: `key ${key}` } })), /"key hmac-sha256:/)
  assert.equal(JSON.stringify(shown({ metadata: { labels: { [key]: '' } }, [key]: { [key]: 1 } })).includes(key), false)
})

test('text designed to be slow to scan costs only linear time', () => {
  /** CPU time of this thread alone, so that other work does not affect it; the minimum of several runs. */
  const work = (text: string) =>
    Math.min(
      ...Array.from({ length: 5 }, () => {
        const before = process.threadCpuUsage()
        scrub(text, hash)
        const { user, system } = process.threadCpuUsage(before)
        return user + system
      }),
    )
  for (const part of ['eyJ', 'plat_', 'eyJaaaaaaaa.', 'eyJaaaaaaaa.eyJ']) {
    const long = part.repeat(Math.ceil(1_000_000 / part.length))
    const [once, tenTimes] = [work(long.slice(0, 100_000)), work(long)]
    // Ten times the input takes about ten times the work. A quadratic search would take a hundred times.
    assert.ok(tenTimes < 40 * Math.max(once, 1000), `${part}: ${once} µs, and ${tenTimes} µs for ten times as much`)
  }
})

test('no secret below a protected path is shown (2,000 objects)', () => {
  const canary = fc.constant('CANARY')
  const value = fc.letrec<{ tree: Json }>(tie => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      canary,
      fc.array(tie('tree'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('a', 'data', 'login', '__proto__', 'token'), tie('tree'), { maxKeys: 2 }),
    ),
  })).tree
  const spec = fc.record({ data: value, login: value, typo: value }, { requiredKeys: [] })
  const tokens = fc.constantFrom(
    '/spec',
    '/spec/data',
    '/spec/data/x',
    '/spec/login',
    '/spec/login/token',
    '/spec/typo',
    '/typo',
  )
  fc.assert(
    fc.property(spec, tokens, value, (fields, path, planted) => {
      const text = JSON.stringify([
        shown({ spec: fields as Json }),
        redactPatch([{ op: 'add', path, value: planted }], protectionOf(Secret), hash),
      ])
      assert.equal(text.includes('CANARY'), false, text)
    }),
    { numRuns: 2000 },
  )
})

test('the salt is created once, readable by its owner only, and an invalid file is rejected', () => {
  const directory = mkdtempSync(join(tmpdir(), 'audit-salt-'))
  const file = join(directory, 'audit.salt')
  assert.throws(() => saltIn(file, false), /ENOENT/)
  const made = saltIn(file, true)
  assert.equal(made.length, 32)
  assert.deepEqual(saltIn(file, true), made)
  assert.deepEqual(saltIn(file, false), made)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  writeFileSync(file, 'short\n')
  assert.throws(() => saltIn(file, true), /is not a valid salt/)
  rmSync(directory, { recursive: true })
})
