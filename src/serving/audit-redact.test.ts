// What the audit log may show of an object: never a secret, but a hash by which a known one is found.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { defineKind } from '../api/kind.ts'
import type { Json } from '../api/object.ts'
import { integer, list, mapOf, struct, text } from '../api/schema.ts'
import { hashWith, protectionOf, protectionOfPaths, redact, redactPatch, saltIn, scrub } from './audit-redact.ts'

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
  }),
  sealed: ['spec.data'],
  hidden: ['spec.login.token'],
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

test('numbers, lists and text where the secret should be are hashed as well', () => {
  assert.equal(JSON.stringify(shown({ spec: { data: { pin: 4711 } } })).includes('4711'), false)
  assert.equal(JSON.stringify(shown({ spec: { data: ['hunter2'] } })).includes('hunter2'), false)
  for (const spec of ['hunter2', ['hunter2'], { data: 'hunter2' }, { login: 'hunter2' }, { login: ['hunter2'] }])
    assert.equal(JSON.stringify(shown({ spec })).includes('hunter2'), false, JSON.stringify(spec))
})

test('a field that a kind with secrets does not know may be a mistyped one, and is hashed', () => {
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

test('the last-applied annotation is hashed whole, keys and tokens of any kind are', () => {
  const annotations = {
    'kubectl.kubernetes.io/last-applied-configuration': '{"spec":{"data":{"p":"hunter2"}}}',
    other: 'x',
  }
  const Open = defineKind({
    kind: 'Open',
    plural: 'opens',
    singular: 'open',
    namespaced: false,
    description: '',
    sample: {},
  })
  const object = { metadata: { annotations }, spec: { key: 'mine', token: 't', name: 'n' }, status: { token: 'u' } }
  const text = JSON.stringify(redact(object, protectionOf(Open), hash))
  for (const secret of ['hunter2', '"mine"', '"t"', '"u"']) assert.equal(text.includes(secret), false, secret)
  assert.match(text, /"other":"x"/)
  assert.match(text, /"name":"n"/)
})

test('the values of a JSON Patch are judged by where their pointers lead', () => {
  const patch = [
    { op: 'add', path: '/spec/data/p', value: 'hunter2' },
    { op: 'replace', path: '/spec/data', value: { p: 'hunter2' } },
    { op: 'test', path: '/spec', value: { displayName: 'seen', data: { p: 'hunter2' } } },
    { op: 'add', path: '', value: { spec: { data: { p: 'hunter2' } } } },
    { op: 'add', path: '/spec/dta/p', value: 'hunter2' },
    { op: 'add', path: '/spec/login~1token', value: 'hunter2' },
    { op: 'add', path: 7, value: 'hunter2' },
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
  const protection = protectionOfPaths(['spec.keys.value'])
  const text = JSON.stringify(redact({ spec: { keys: [{ value: 'hunter2', name: 'n' }] } }, protection, hash))
  assert.match(text, /"value":"hmac-.*"name":"n"/)
  const patch = [{ op: 'add', path: '/spec/keys/0/value', value: 'hunter2' }]
  assert.equal(JSON.stringify(redactPatch(patch, protection, hash)).includes('hunter2'), false)
})

test('keys and tokens that stray into other text are taken out of it', () => {
  const key = `plat_${'a1B'.repeat(16)}z`
  const token = `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(40)}.${'c'.repeat(40)}`
  assert.equal(scrub(`/a?x=${key}&y=1`, hash), `/a?x=${hash(key)}&y=1`)
  assert.equal(scrub(`Bearer ${token}`, hash), `Bearer ${hash(token)}`)
  assert.match(JSON.stringify(shown({ spec: { displayName: `key ${key}` } })), /"key hmac-sha256:/)
})

test('text made to be slow to look through costs as much more as it is longer, and no more', () => {
  /** Time of this thread alone, so that whatever else runs here does not count; the least of several. */
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
    // Ten times as long: about ten times the work. To look at everything from every place would be a hundred times.
    assert.ok(tenTimes < 40 * Math.max(once, 1000), `${part}: ${once} µs, and ${tenTimes} µs for ten times as much`)
  }
})

test('no secret planted anywhere below a protected path gets through (2,000 objects)', () => {
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

test('the salt is made once, for its owner alone, and something else in its place is refused', () => {
  const directory = mkdtempSync(join(tmpdir(), 'audit-salt-'))
  const file = join(directory, 'audit.salt')
  assert.throws(() => saltIn(file, false), /ENOENT/)
  const made = saltIn(file, true)
  assert.equal(made.length, 32)
  assert.deepEqual(saltIn(file, true), made)
  assert.deepEqual(saltIn(file, false), made)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  writeFileSync(file, 'short\n')
  assert.throws(() => saltIn(file, true), /is not a salt/)
  rmSync(directory, { recursive: true })
})
