// The issuer's keys: kept while it is unreachable, and fetched again for an unknown key id, but not too often.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Json, JsonObject } from '../../api/object.ts'
import { openKeySet } from './jwks.ts'

const jwk = (kid: string, over: object = {}) =>
  ({
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
    kid,
    use: 'sig',
    alg: 'ES256',
    ...over,
  }) as JsonObject

function open(answer: () => Json, now = () => performance.now()) {
  let asked = 0
  const failures: unknown[] = []
  const set = openKeySet({
    fetch: async () => {
      asked++
      return answer()
    },
    now,
    failed: error => void failures.push(error),
    atMostEvery: 20,
  })
  return { set, failures, asked: () => asked }
}

test('an unknown key is fetched; a known one costs nothing', async () => {
  const keys = [jwk('a')]
  const { set, asked } = open(() => ({ keys }))
  await set.ready
  assert.ok(await set.keyOf('a'))
  assert.equal(asked(), 1)
  keys.push(jwk('b'))
  assert.ok(await set.keyOf('b'))
  assert.equal(asked(), 2)
  set.stop()
})

test('many unknown keys cause one fetch, at most once per interval', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const { set, asked } = open(() => ({ keys: [jwk('a')] }), Date.now)
  t.after(set.stop)
  const pass = async (milliseconds: number) => {
    for (let n = 0; n < 10; n++) await turn()
    t.mock.timers.tick(milliseconds)
    for (let n = 0; n < 10; n++) await turn()
  }
  await set.ready
  const many = Promise.all(Array.from({ length: 100 }, (_, at) => set.keyOf(`x${at}`)))
  await pass(19)
  assert.equal(asked(), 1)
  await pass(1)
  assert.ok((await many).every(one => one === undefined))
  assert.equal(asked(), 2)
  for (let at = 0; at < 5; at++) {
    const one = set.keyOf('y')
    await pass(19)
    assert.equal(asked(), 2 + at)
    await pass(1)
    assert.equal(await one, undefined)
    assert.equal(asked(), 3 + at)
  }
})

test('the known keys stay while the issuer is unreachable or sends an invalid response', async () => {
  let answer: () => Json = () => ({ keys: [jwk('a')] })
  const { set, failures } = open(() => answer())
  await set.ready
  answer = () => {
    throw new Error('away')
  }
  assert.equal(await set.keyOf('b'), undefined)
  answer = () => 'nonsense'
  assert.equal(await set.keyOf('b'), undefined)
  assert.equal(failures.length, 2)
  assert.ok(await set.keyOf('a'))
  assert.equal(set.keyChanges, 0)
  answer = () => ({ keys: [jwk('b')] })
  assert.ok(await set.keyOf('b'))
  assert.equal(set.keyChanges, 1, 'a key that is gone takes with it what it signed')
  assert.equal(await set.keyOf('a'), undefined)
  set.stop()
})

test('a different key with a known id replaces it; the same key sent again does not', async () => {
  const [one, other] = [jwk('a'), jwk('a')]
  let keys = [one]
  const { set } = open(() => ({ keys: keys.map(key => ({ ...key })) }))
  await set.ready
  await set.keyOf('unknown')
  assert.equal(set.keyChanges, 0)
  keys = [other]
  await set.keyOf('unknown')
  assert.equal(set.keyChanges, 1)
  set.stop()
})

test('keys of other types, for other uses, or with a private part are ignored', async () => {
  const others = [
    jwk('enc', { use: 'enc' }),
    jwk('alg', { alg: 'ES384' }),
    jwk('rsa', { kty: 'RSA' }),
    jwk('d', { d: 'AA' }),
    'x',
    null,
  ]
  const { set } = open(() => ({ keys: [...others, jwk('a')] as Json[] }))
  await set.ready
  assert.ok(await set.keyOf('a'))
  for (const kid of ['enc', 'alg', 'rsa', 'd']) assert.equal(await set.keyOf(kid), undefined, kid)
  set.stop()
})

test('a failure after the stop is ignored, because another key set is in use by then', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<Json>()
  const failures: unknown[] = []
  const set = openKeySet({
    fetch: () => {
      asked.resolve()
      return answer.promise
    },
    now: () => performance.now(),
    failed: error => void failures.push(error),
  })
  await asked.promise
  const found = set.keyOf('a')
  set.stop()
  answer.reject(new Error('closed'))
  assert.equal(await found, undefined)
  assert.deepEqual(failures, [])
})
