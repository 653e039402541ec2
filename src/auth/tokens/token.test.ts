// Direct-cluster tokens: each reason to reject one, and the claims of valid ones (D31, D32).

import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, importJWK } from 'jose'
import type { Scope } from '../../api/caller.ts'
import { audiencesOf, type Claims, claimsOf, gatewayAudience, signToken, TokenError, verifyToken } from './token.ts'

const issuer = 'https://platform.example'
const now = Date.parse('2026-11-15T12:00:00Z')
const seconds = now / 1000
const pair = await generateKeyPair('ES256', { extractable: true })
const key = { id: 'signing-a', private: pair.privateKey as CryptoKey }
const caller = { username: 'ada', groups: ['system:authenticated'], identity: 'User', keyUid: 'uid-1' } as const
const claims = claimsOf({ issuer, caller, scope: undefined, now, expires: now + 3600_000, id: 'jti-1' })
const good = await signToken(claims, key)

const options = {
  issuer,
  audience: gatewayAudience,
  keyOf: async (id: string) => (id === key.id ? (pair.publicKey as CryptoKey) : undefined),
  now: () => now,
}

const base64 = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** Signs any content with the right key. */
async function forge(header: object | string, body: object | string): Promise<string> {
  const text = `${base64(header)}.${base64(body)}`
  const jwk = await exportJWK(pair.privateKey)
  const { createPrivateKey } = await import('node:crypto')
  const own = createPrivateKey({ key: jwk as never, format: 'jwk' })
  return `${text}.${sign('sha256', Buffer.from(text), { key: own, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

const header = { alg: 'ES256', typ: 'JWT', kid: key.id }
const [head = '', body = '', signature = ''] = good.split('.')
const publicPem = await exportSPKI(pair.publicKey)
const hs256 = (text: string) => createHmac('sha256', publicPem).update(text).digest('base64url')
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const signedByOther = sign('sha256', Buffer.from(`${head}.${body}`), { key: other, dsaEncoding: 'ieee-p1363' })
const hmacText = `${base64({ ...header, alg: 'HS256' })}.${body}`
const without = (name: keyof Claims) => {
  const { [name]: _, ...rest } = claims
  return rest
}

const refused: { readonly [name: string]: string } = {
  'alg none, no signature': `${base64({ ...header, alg: 'none' })}.${body}.`,
  'alg none, with a signature': `${base64({ ...header, alg: 'none' })}.${body}.${signature}`,
  'alg None': await forge({ ...header, alg: 'None' }, claims),
  'HS256 with the public key': `${hmacText}.${hs256(hmacText)}`,
  RS256: await forge({ ...header, alg: 'RS256' }, claims),
  ES384: await forge({ ...header, alg: 'ES384' }, claims),
  'no alg': await forge({ typ: 'JWT', kid: key.id }, claims),
  'unknown kid': await forge({ ...header, kid: 'signing-z' }, claims),
  'no kid': await forge({ alg: 'ES256', typ: 'JWT' }, claims),
  'empty kid': await forge({ ...header, kid: '' }, claims),
  'kid with a path': await forge({ ...header, kid: '../../etc/passwd' }, claims),
  'kid with a URL': await forge({ ...header, kid: 'https://evil.example/key' }, claims),
  'kid that is a number': await forge({ ...header, kid: 7 }, claims),
  'kid named __proto__': await forge(`{"alg":"ES256","typ":"JWT","kid":"__proto__"}`, claims),
  jku: await forge({ ...header, jku: 'https://evil.example/jwks' }, claims),
  x5u: await forge({ ...header, x5u: 'https://evil.example/cert' }, claims),
  x5c: await forge({ ...header, x5c: ['MIIB'] }, claims),
  jwk: await forge({ ...header, jwk: await exportJWK(pair.publicKey) }, claims),
  crit: await forge({ ...header, crit: ['exp'] }, claims),
  b64: await forge({ ...header, b64: false }, claims),
  zip: await forge({ ...header, zip: 'DEF' }, claims),
  'typ at+jwt': await forge({ ...header, typ: 'at+jwt' }, claims),
  'no typ': await forge({ alg: 'ES256', kid: key.id }, claims),
  'header twice': await forge(`{"alg":"none","alg":"ES256","typ":"JWT","kid":"${key.id}"}`, claims),
  'header that is a list': await forge('["ES256"]', claims),
  'no aud': await forge(header, without('aud')),
  'wrong aud': await forge(header, { ...claims, aud: ['platform:cluster:prod'] }),
  'aud that is a text': await forge(header, { ...claims, aud: gatewayAudience }),
  'empty aud': await forge(header, { ...claims, aud: [] }),
  'no iss': await forge(header, without('iss')),
  'wrong iss': await forge(header, { ...claims, iss: 'https://evil.example' }),
  'iss with a slash more': await forge(header, { ...claims, iss: `${issuer}/` }),
  expired: await forge(header, { ...claims, iat: seconds - 7200, nbf: seconds - 7200, exp: seconds - 6 }),
  'no exp': await forge(header, without('exp')),
  'exp that is a text': await forge(header, { ...claims, exp: String(claims.exp) }),
  'exp without end': await forge(header, JSON.stringify(claims).replace(String(claims.exp), '1e999')),
  'not yet valid': await forge(header, { ...claims, nbf: seconds + 61 }),
  'issued in the future': await forge(header, { ...claims, iat: seconds + 61 }),
  'ends before it begins': await forge(header, { ...claims, exp: claims.iat }),
  'no sub': await forge(header, without('sub')),
  'empty sub': await forge(header, { ...claims, sub: '' }),
  'no groups': await forge(header, without('groups')),
  'groups that are not strings': await forge(header, { ...claims, groups: [{}] }),
  'no jti': await forge(header, without('jti')),
  'no holder': await forge(header, without('platform.sh')),
  'scope that is a text': await forge(header, { ...claims, 'platform.sh': { ...claims['platform.sh'], scope: 'all' } }),
  'scope with an unknown field': await forge(header, {
    ...claims,
    'platform.sh': { ...claims['platform.sh'], scope: { clusters: [{ cluster: 'dev', zone: 'eu' }] } },
  }),
  'claims twice': await forge(header, JSON.stringify(claims).replace('{', '{"sub":"root",')),
  'claims that are not JSON': await forge(header, 'sub=ada'),
  truncated: good.slice(0, -10),
  'no signature': `${head}.${body}.`,
  'two parts': `${head}.${body}`,
  'four parts': `${good}.${signature}`,
  'two tokens': `${good},${good}`,
  'a blank before it': ` ${good}`,
  'signature of another key': `${head}.${body}.${signedByOther.toString('base64url')}`,
  'signature of zeros': `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`,
  'signature in DER': `${head}.${body}.${sign('sha256', Buffer.from(`${head}.${body}`), other).toString('base64url')}`,
  'other claims under the same signature': `${head}.${base64({ ...claims, sub: 'root' })}.${signature}`,
  'a mebibyte': `${head}.${'A'.repeat(2 ** 20)}.${signature}`,
  'nothing at all': '',
}

test('a valid token is accepted, with its holder', async () => {
  assert.equal(JSON.stringify(await verifyToken(good, options)), JSON.stringify(claims))
  const soon = { ...options, now: () => now - 59_000 }
  assert.equal((await verifyToken(good, soon)).sub, 'ada')
})

for (const [name, token] of Object.entries(refused))
  test(`rejected: ${name}`, async () => {
    await assert.rejects(verifyToken(token, options), (error: Error) => {
      assert.ok(error instanceof TokenError, String(error))
      assert.ok(!error.message.includes('ada') && !error.message.includes(signature), error.message)
      return true
    })
  })

test('there are at least 40 kinds of rejection', () => {
  assert.ok(Object.keys(refused).length >= 40)
})

test('a token is valid for five seconds after its end, because clocks differ (D73)', async () => {
  const ended = await forge(header, { ...claims, iat: seconds - 7200, nbf: seconds - 7200, exp: seconds - 4 })
  assert.equal((await verifyToken(ended, options)).sub, claims.sub)
})

test('removing a key from the key set invalidates its tokens', async () => {
  const gone = { ...options, keyOf: async () => undefined }
  await assert.rejects(verifyToken(good, gone), TokenError)
  const jwk = await exportJWK((await generateKeyPair('ES256', { extractable: true })).publicKey)
  const swapped = { ...options, keyOf: async () => (await importJWK(jwk, 'ES256')) as CryptoKey }
  await assert.rejects(verifyToken(good, swapped), TokenError)
})

test('only a scope of exactly one named cluster, for at most 15 minutes, is also valid for a stock kube-apiserver (D31)', () => {
  const prod: Scope = { clusters: [{ cluster: 'prod' }] }
  const both = [gatewayAudience, 'platform:cluster:prod']
  assert.deepEqual(audiencesOf(prod, 900), both)
  assert.deepEqual(audiencesOf({ ...prod, projects: [], rules: [] }, 60), both)
  const others: [Scope | undefined, number][] = [
    [prod, 901],
    [undefined, 60],
    [{}, 60],
    [{ clusters: [{ cluster: '*' }] }, 60],
    [{ clusters: [{ cluster: 'prod-*' }] }, 60],
    [{ clusters: [{}] }, 60],
    [{ clusters: [{ cluster: 'prod' }, { cluster: 'dev' }] }, 60],
    [{ ...prod, projects: [{ project: 'web' }] }, 60],
    [{ ...prod, roles: [{ role: 'agent' }] }, 60],
    [{ ...prod, rules: [{ verbs: ['get'] }] }, 60],
    [{ ...prod, allowPlatformCli: true }, 60],
  ]
  for (const [scope, ttl] of others) assert.deepEqual(audiencesOf(scope, ttl), [gatewayAudience], JSON.stringify(scope))
})
