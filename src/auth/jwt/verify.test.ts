// Verification of tokens with arbitrary input, with a clock that the tests control, and the fetching of keys.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import fc from 'fast-check'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Json } from '../../api/object.ts'
import { loadAuthConfig } from './auth-config.ts'
import { MappingError } from './claim-mapping.ts'
import { type IssuerKeys, openIssuerKeys } from './issuer-keys.ts'
import { type Issuer, JwtError, type VerifyOptions, verifyJwt } from './verify.ts'

const url = 'https://issuer.example.org'
const time = Date.UTC(2026, 0, 2, 3, 4, 5)
const seconds = time / 1000

const configOf = (mappings: object) => {
  const text = JSON.stringify({
    apiVersion: 'config.platform.sh/v1',
    kind: 'AuthConfig',
    jwt: [{ name: 'ci', issuer: { url, audiences: ['us'] }, claimMappings: mappings }],
  })
  const { issuers, problems } = loadAuthConfig(Buffer.from(text), () => ({ problem: 'no files here' }))
  assert.deepEqual(problems, [])
  const [config] = issuers
  assert.ok(config)
  return config
}

/** An issuer in this process. `published` is what it publishes. */
function openSource(now: () => number, published: () => readonly JWK[]) {
  const source = { fetches: 0, isDown: false, withdrawn: 0 }
  const keys: IssuerKeys = openIssuerKeys({
    url,
    discoveryURL: `${url}/discovery`,
    fetchJson: async address => {
      if (source.isDown) throw new Error('unreachable')
      if (address !== `${url}/keys`) return { issuer: url, jwks_uri: `${url}/keys` }
      source.fetches++
      return { keys: published() } as unknown as Json
    },
    close: () => {},
    now,
    failed: () => {},
    worked: () => {},
    withdrawn: () => source.withdrawn++,
  })
  return Object.assign(source, { keys })
}

describe('verifying tokens', () => {
  let privateKey: CryptoKey
  let jwk: JWK
  let issuer: Issuer
  const options = (now = time): VerifyOptions<Issuer> => ({
    issuerOf: wanted => (wanted === url ? issuer : undefined),
    now: () => now,
  })
  const sign = (claims: object = {}) =>
    new SignJWT({ iss: url, aud: 'us', sub: 'robot', exp: seconds + 60, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'a' })
      .sign(privateKey)
  before(async () => {
    const pair = await generateKeyPair('ES256', { extractable: true })
    privateKey = pair.privateKey
    jwk = { ...(await exportJWK(pair.publicKey)), kid: 'a' }
    const config = configOf({ username: { claim: 'sub' }, groups: { claim: 'groups' } })
    issuer = {
      config,
      keys: openSource(
        () => time,
        () => [jwk],
      ).keys,
    }
  })

  test('times have five seconds of leeway, and no more', async () => {
    const token = await sign({ nbf: seconds, iat: seconds })
    for (const [offset, isValid] of [
      [-5, true],
      [-5.001, false],
      [0, true],
      [64.999, true],
      [65, false],
    ] as const) {
      const verifying = verifyJwt(token, options(time + offset * 1000))
      if (isValid) assert.equal((await verifying).expires, seconds + 60)
      else await assert.rejects(verifying, JwtError)
    }
  })

  test('arbitrary text and changed tokens are rejected with JwtError, and nothing else happens', async () => {
    const token = await sign()
    const [head = '', body = '', signature = ''] = token.split('.')
    const part = fc.oneof(
      fc.constantFrom(head, body, signature, ''),
      fc.json().map(text => Buffer.from(text).toString('base64url')),
      fc.base64String().map(text => text.replace(/[+/=]/g, '_')),
      fc.string(),
    )
    const changed = fc.tuple(fc.nat(token.length - 1), fc.constantFrom(...'AZaz09-_.')).map(([at, letter]) => {
      const next = token.slice(0, at) + letter + token.slice(at + 1)
      return next === token ? '' : next
    })
    const texts = fc.oneof(
      fc.string({ maxLength: 200 }),
      fc.array(part, { minLength: 1, maxLength: 6 }).map(parts => parts.join('.')),
      changed,
    )
    await fc.assert(
      fc.asyncProperty(texts, async text => {
        // The last bits of base64 do not change the signature.
        if (text.slice(0, -1) === token.slice(0, -1)) return
        await assert.rejects(verifyJwt(text, options()), JwtError)
      }),
      { numRuns: 500 },
    )
  })

  test('arbitrary claims become a user with prefixes, or are rejected with MappingError', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('sub', 'groups', 'x', '__proto__'), fc.jsonValue()), claims => {
        try {
          const { username, groups } = issuer.config.mapping.map(claims as { [name: string]: Json })
          for (const name of [username, ...groups]) assert.match(name, /^ci:[^\n]*$/)
        } catch (error) {
          assert.ok(error instanceof MappingError, String(error))
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('fetching keys', () => {
  test('unknown key ids cause one fetch in 30 seconds, and known keys none', async () => {
    const { publicKey } = await generateKeyPair('ES256', { extractable: true })
    const jwk = { ...(await exportJWK(publicKey)), kid: 'a' }
    let [now, published] = [time, [jwk]]
    const source = openSource(
      () => now,
      () => published,
    )
    const unknown = () => Promise.all(Array.from({ length: 50 }, (_, id) => source.keys.keyFor(`x${id}`, 'ES256')))
    assert.ok(await source.keys.keyFor('a', 'ES256'))
    assert.equal(source.fetches, 1)
    await unknown()
    await unknown()
    assert.equal(source.fetches, 2)
    now += 29_999
    await unknown()
    assert.equal(source.fetches, 2)
    now += 1
    published = [{ ...jwk, kid: 'b' }]
    assert.ok(await source.keys.keyFor('b', 'ES256'))
    assert.equal(source.fetches, 3)
    assert.equal(source.withdrawn, 1)
    assert.equal(await source.keys.keyFor('a', 'ES256'), undefined)
    // A key without an id in the token must be unambiguous, and fits only its own algorithm.
    assert.ok(await source.keys.keyFor(undefined, 'ES256'))
    assert.equal(await source.keys.keyFor('b', 'ES384'), undefined)
    now += 60_000
    source.isDown = true
    assert.equal(await source.keys.keyFor('c', 'ES256'), undefined)
    assert.ok(await source.keys.keyFor('b', 'ES256'), 'known keys stay while the issuer is down')
    source.keys.stop()
  })
})
