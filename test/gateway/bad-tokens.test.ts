// The gateway rejects every invalid token with 401, and forwards none of these requests.

import assert from 'node:assert/strict'
import { createHmac, createPublicKey, sign } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type CryptoKey, exportPKCS8, exportSPKI, importJWK, type JWK, SignJWT } from 'jose'
import { openBare } from '../support/wire.ts'
import { claimsFor, kid, makeKeys, openBackend, openTestGateway, type TestGateway } from './in-process.ts'

const path = '/kubernetes/cluster/prod/api/v1/pods'
const b64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const now = Math.floor(Date.now() / 1000)

describe('invalid tokens', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await openTestGateway({ backend: await openBackend() })
  })
  after(() => gateway.close())

  const ask = (authorization: string | readonly string[]) => {
    const headers = new Headers()
    for (const one of [authorization].flat()) headers.append('Authorization', one)
    return fetch(`${gateway.url}${path}`, { headers })
  }
  /** With a true signature over whatever it says. */
  const signed = (head: unknown, body: unknown) => {
    const text = `${b64(head)}.${b64(body)}`
    const key = createPrivate()
    return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
  let privatePem = ''
  const createPrivate = () => privatePem
  const head = { alg: 'ES256', typ: 'JWT', kid }

  test('each of them gets 401 with a reason that does not reveal the token', async () => {
    privatePem = await exportPKCS8(gateway.privateKey)
    const good = await gateway.sign()
    assert.equal((await ask(`Bearer ${good}`)).status, 200)
    const [h = '', b = '', s = ''] = good.split('.')
    const spki = await exportSPKI((await importJWK(gateway.publicJwk, 'ES256')) as CryptoKey)
    const hmac = (secret: string | Buffer, alg = 'HS256') => {
      const text = `${b64({ ...head, alg })}.${b64(claimsFor())}`
      return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
    }
    const der = createPublicKey(spki).export({ type: 'spki', format: 'der' })
    const other = makeKeys()
    const stranger = (await importJWK(other.privateJwk, 'ES256')) as CryptoKey
    const byStranger = (header: object) =>
      new SignJWT(claimsFor() as never).setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid, ...header }).sign(stranger)
    const without = (name: string) =>
      signed(head, Object.fromEntries(Object.entries(claimsFor()).filter(([key]) => key !== name)))
    const twice = (name: string, value: unknown) =>
      signed(head, `{"${name}":${JSON.stringify(value)},${JSON.stringify(claimsFor()).slice(1)}`)
    const vectors: { readonly [what: string]: string } = {
      'alg none': `${b64({ ...head, alg: 'none' })}.${b}.`,
      'alg none with a signature': `${b64({ ...head, alg: 'none' })}.${b}.${s}`,
      'alg None': `${b64({ ...head, alg: 'None' })}.${b}.${s}`,
      'alg missing': signed({ typ: 'JWT', kid }, claimsFor()),
      'alg a list': signed({ ...head, alg: ['ES256'] }, claimsFor()),
      'HS256 with the public key as PEM': hmac(spki),
      'HS256 with the public key as DER': hmac(der),
      'HS256 with the JWK': hmac(JSON.stringify(gateway.publicJwk)),
      'HS256 with an empty secret': hmac(''),
      RS256: signed({ ...head, alg: 'RS256' }, claimsFor()),
      ES384: signed({ ...head, alg: 'ES384' }, claimsFor()),
      'unknown kid': signed({ ...head, kid: 'signing-other' }, claimsFor()),
      'no kid': signed({ alg: 'ES256', typ: 'JWT' }, claimsFor()),
      'kid with a path': signed({ ...head, kid: '../../etc/passwd' }, claimsFor()),
      'kid with SQL': signed({ ...head, kid: "a' or '1'='1" }, claimsFor()),
      'kid a number': signed({ ...head, kid: 1 }, claimsFor()),
      'kid of a prototype': signed({ ...head, kid: '__proto__' }, claimsFor()),
      jku: signed({ ...head, jku: 'https://evil.test/jwks.json' }, claimsFor()),
      x5u: signed({ ...head, x5u: 'https://evil.test/x' }, claimsFor()),
      x5c: signed({ ...head, x5c: ['MIIB'] }, claimsFor()),
      'jwk in the header': await byStranger({ jwk: other.publicJwk }),
      crit: signed({ ...head, crit: ['exp'] }, claimsFor()),
      'b64 false': signed({ ...head, b64: false, crit: ['b64'] }, claimsFor()),
      'typ at+jwt': signed({ ...head, typ: 'at+jwt' }, claimsFor()),
      'no typ': signed({ alg: 'ES256', kid }, claimsFor()),
      'signed by a stranger': await byStranger({}),
      'no aud': without('aud'),
      'another aud': signed(head, claimsFor({ aud: ['platform:cluster:prod'] })),
      'aud a text': signed(head, claimsFor({ aud: 'platform:direct-cluster-endpoint' })),
      'aud empty': signed(head, claimsFor({ aud: [] })),
      'no iss': without('iss'),
      'another iss': signed(head, claimsFor({ iss: 'https://evil.test' })),
      'iss with a slash more': signed(head, claimsFor({ iss: 'https://issuer.test/' })),
      'no exp': without('exp'),
      expired: signed(head, claimsFor({ iat: now - 600, nbf: now - 600, exp: now - 61 })),
      'exp a text': signed(head, claimsFor({ exp: '9999999999' })),
      'exp a fraction': signed(head, claimsFor({ exp: now + 600.5 })),
      'exp beyond counting': signed(head, JSON.stringify(claimsFor()).replace(/"exp":\d+/, '"exp":1e400')),
      'not yet valid': signed(head, claimsFor({ nbf: now + 120 })),
      'made in the future': signed(head, claimsFor({ iat: now + 120 })),
      'ends before it begins': signed(head, claimsFor({ iat: now + 30, exp: now + 20 })),
      'no sub': without('sub'),
      'sub empty': signed(head, claimsFor({ sub: '' })),
      'no jti': without('jti'),
      'no holder': without('platform.sh'),
      'holder without a key': signed(head, claimsFor({ 'platform.sh': { name: 'ada' } })),
      'scope a list': signed(head, claimsFor({ 'platform.sh': { name: 'ada', key: 'k', scope: [] } })),
      'groups a text': signed(head, claimsFor({ groups: 'system:masters' })),
      'sub twice': twice('sub', 'root'),
      'exp twice': twice('exp', now + 9999),
      'alg twice': signed(`{"alg":"none","alg":"ES256","typ":"JWT","kid":"${kid}"}`, claimsFor()),
      'claims are a list': signed(head, []),
      'claims that are not JSON': signed(head, 'hello'),
      'claims changed': `${h}.${b64(claimsFor({ sub: 'root' }))}.${s}`,
      'signature changed': `${h}.${b}.${s.slice(0, -4)}AAAA`,
      'signature missing': `${h}.${b}.`,
      truncated: good.slice(0, -8),
      'head alone': h,
      'two parts': `${h}.${b}`,
      'four parts': `${good}.x`,
      'five parts, as if encrypted': `${h}.${b}.${s}.${b}.${s}`,
      'padding inside': `${h}=.${b}.${s}`,
      'two tokens': `${good} ${good}`,
      'two tokens with a comma': `${good},${good}`,
      'almost 16 KiB': `${h}.${'A'.repeat(15_000)}.${s}`,
    }
    assert.ok(Object.keys(vectors).length >= 40)
    const reached = gateway.backend.got.length
    for (const [what, token] of Object.entries(vectors)) {
      const answer = await ask(`Bearer ${token}`)
      const text = await answer.text()
      assert.equal(answer.status, 401, `${what}: ${text}`)
      assert.equal(JSON.parse(text).kind, 'Status', what)
      assert.ok(!text.includes(s) && !text.includes(b), `${what}: ${text}`)
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer', what)
    }
    assert.equal(gateway.backend.got.length, reached, 'nothing of it reached the cluster')
  })

  test('two Authorization headers, another scheme, a token in the query and no token get 401', async () => {
    const good = await gateway.sign()
    for (const authorization of ['Basic YTpi', good, 'Bearer', 'Bearer  '])
      assert.equal((await ask(authorization)).status, 401, authorization)
    assert.equal((await fetch(`${gateway.url}${path}?access_token=${good}`)).status, 401)
    assert.equal((await ask(`bearer  ${good}`)).status, 200)
    const reached = gateway.backend.got.length
    for (const both of [
      [good, good],
      [good, 'other'],
      ['other', good],
    ]) {
      const bare = await openBare(gateway.url)
      const lines = both.map(token => `Authorization: Bearer ${token}`)
      bare.socket.write(
        `${[`GET ${path} HTTP/1.1`, 'Host: gateway', 'Connection: close', ...lines].join('\r\n')}\r\n\r\n`,
      )
      const answer = await bare.ended()
      assert.match(answer, /^HTTP\/1\.1 401 /)
      assert.match(answer, /more than one Authorization header/)
    }
    assert.equal(gateway.backend.got.length, reached)
  })

  test('a token of 17 KiB or 1 MiB gets 401 without being buffered', async () => {
    for (const size of [17 * 1024, 1024 * 1024]) {
      const bare = await openBare(gateway.url)
      const lines = [`GET ${path} HTTP/1.1`, 'Host: gateway', `Authorization: Bearer ${'A'.repeat(size)}`]
      bare.socket.write(`${lines.join('\r\n')}\r\n\r\n`)
      const answer = await bare.ended()
      assert.match(answer, /^HTTP\/1.1 401 /)
      assert.match(answer, /www-authenticate: bearer/i)
      assert.equal(JSON.parse(answer.split('\r\n\r\n')[1] ?? '').reason, 'Unauthorized')
      assert.ok(!answer.includes('AAAA'))
    }
  })

  test('an unknown kid triggers a fetch of the keys, and a valid token stays valid until its key is removed', async () => {
    const good = await gateway.sign()
    const { privateJwk, publicJwk } = makeKeys()
    const next = (await importJWK(privateJwk, 'ES256')) as CryptoKey
    const ofNext = await new SignJWT(claimsFor() as never)
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: 'next' })
      .sign(next)
    const status = async (token: string) => (await ask(`Bearer ${token}`)).status
    const uses = gateway.used.length
    for (let count = 0; count < 20; count++) assert.equal(await status(good), 200)
    assert.equal(gateway.used.length, uses + 20)
    assert.equal(await status(ofNext), 401)
    gateway.published.push({ ...publicJwk, kid: 'next' })
    assert.equal(await status(ofNext), 200, 'nobody had to wait for the next look')
    assert.equal(await status(good), 200)
    const [first] = gateway.published.splice(0, 1)
    assert.equal(await status(await gateway.sign(claimsFor(), { kid: 'unknown' })), 401)
    assert.deepEqual([await status(ofNext), await status(good)], [200, 401])
    gateway.published.push(first as JWK)
    assert.equal(await status(good), 200)
  })
})
