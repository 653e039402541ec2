// Encryption of values, and the key ring (D28).

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { openSealer, type SealContext, SealError } from './encryption.ts'
import { makeKeyRing, readKeyRing } from './key-ring.ts'

const random = (size: number) => randomBytes(size)
const place: SealContext = { kind: 'SharedSecret', namespace: 'ns', name: 'db', uid: 'u1', path: 'spec.data.password' }
const ring = makeKeyRing(random)
const sealer = openSealer({ keys: readKeyRing(ring), random })

test('an encrypted value decrypts in its own context, whatever the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), text => {
      const sealed = sealer.seal(place, text)
      assert.ok(sealer.isSealed(sealed))
      assert.match(sealed, /^sealed:v1:[a-z0-9]+:[\w-]+$/)
      assert.equal(String(sealer.open(place, sealed)), text)
    }),
  )
})

test('the same text encrypts differently every time', () => {
  assert.notEqual(sealer.seal(place, 'x'), sealer.seal(place, 'x'))
})

test('an encrypted value does not decrypt in any other context (D28), even if its concatenation is equal', () => {
  const sealed = sealer.seal(place, 'hunter2')
  const moved: Partial<SealContext>[] = [
    { kind: 'ProjectSecret' },
    { namespace: 'other' },
    { name: 'db2' },
    { uid: 'u2' },
    { path: 'spec.data.user' },
    { namespace: 'n', name: 'sdb' },
    { namespace: '', name: 'nsdb' },
  ]
  for (const change of moved) assert.throws(() => sealer.open({ ...place, ...change }, sealed), SealError)
})

test('a changed value does not decrypt, and the error reveals nothing of it', () => {
  const sealed = sealer.seal(place, 'hunter2')
  const start = sealed.lastIndexOf(':') + 1
  for (let i = start; i < sealed.length - 1; i++) {
    const changed = `${sealed.slice(0, i)}${sealed[i] === 'A' ? 'B' : 'A'}${sealed.slice(i + 1)}`
    assert.throws(
      () => sealer.open(place, changed),
      (error: Error) =>
        error instanceof SealError &&
        !error.message.includes('hunter2') &&
        !error.message.includes(sealed.slice(start)),
    )
  }
  for (const broken of [
    '',
    'plain',
    'sealed:v1:',
    'sealed:v1:k',
    'sealed:v1:k:',
    'sealed:v2:k:AAAA',
    sealed.slice(0, -8),
  ]) {
    assert.throws(() => sealer.open(place, broken), SealError)
  }
})

test('after rotation the new key encrypts and the old one still decrypts; without it the error names the field', () => {
  const rotated = makeKeyRing(random, ring)
  const both = openSealer({ keys: readKeyRing(rotated), random })
  const old = sealer.seal(place, 'x')
  assert.equal(String(both.open(place, old)), 'x')
  assert.equal(both.isCurrent(old), false)
  assert.ok(both.isCurrent(both.seal(place, 'x')))
  assert.throws(
    () => sealer.open(place, both.seal(place, 'x')),
    /spec\.data\.password of SharedSecret ns\/db is encrypted with the key "[0-9a-f]+", which/,
  )
})

test('an invalid key ring is rejected by line number, without its content', () => {
  const [, line = ''] = ring.split('\n')
  assert.throws(() => readKeyRing(''), /no key/)
  assert.throws(() => readKeyRing('# only a comment\n'), /no key/)
  assert.throws(
    () => readKeyRing(`${line}\nid c2hvcnQ=\n`),
    (error: Error) => /line 2/.test(error.message) && !error.message.includes('c2hvcnQ'),
  )
  assert.throws(() => readKeyRing(`${line}\n${line}`), /duplicate id/)
})
