// Tokens that must not sign in, and faults of issuers. No message and no log line contains a token.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { CompactEncrypt, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { soon } from '../access/people.ts'
import { entryOf, openSignIn, type SignInStage, self } from './sign-in-stage.ts'
import { audience, seconds, startIssuer, type TestIssuer } from './test-issuer.ts'

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('invalid tokens', () => {
  let issuer: TestIssuer
  let stranger: TestIssuer
  let stage: SignInStage
  /** Every token of this file, to search for in logs. */
  const sent: string[] = []
  const outcome = (token: string) => {
    sent.push(token)
    return stage.outcome(token)
  }
  const rejects = async (token: string, why: RegExp) => {
    const message = await outcome(token)
    assert.match(message, /^401 /)
    assert.match(message, why)
    for (const part of token.split('.')) assert.ok(part.length < 8 || !message.includes(part), message)
  }
  before(async () => {
    ;[issuer, stranger] = await Promise.all([startIssuer(), startIssuer()])
    stage = await openSignIn([entryOf(issuer)])
  })
  after(async () => {
    await stage?.close()
    await Promise.all([issuer.stop(), stranger.stop()])
  })

  test('another issuer is rejected, and nothing is fetched from it', async () => {
    await rejects(await stranger.sign(), /issuer of the token is not configured/)
    await rejects(await stranger.sign({ iss: `${issuer.url}/` }), /issuer of the token is not configured/)
    for (const iss of [undefined, 1, {}, [issuer.url], ''])
      await rejects(await stranger.sign({ iss }), /issuer of the token is not configured/)
    assert.deepEqual(stranger.fetches, { discovery: 0, keys: 0 })
  })

  test('only keys of the issuer that the token names are tried', async () => {
    await rejects(await stranger.sign({ iss: issuer.url }), /signature of the token is invalid/)
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
    const jwk = await exportJWK(publicKey)
    for (const header of [{ jwk }, { jku: `${stranger.url}/keys` }, { x5u: stranger.url }])
      await rejects(await issuer.sign({}, { key: privateKey, header }), /signature of the token is invalid/)
    assert.deepEqual(stranger.fetches, { discovery: 0, keys: 0 })
  })

  test('another audience is rejected', async () => {
    for (const aud of [undefined, '', 'https://other.example.org', [], ['x'], { [audience]: 1 }, `${audience}/`])
      await rejects(await issuer.sign({ aud }), /none of the audiences/)
    assert.equal(await outcome(await issuer.sign({ aud: ['x', audience] })), 'ci:robot')
  })

  test('none and HMAC are rejected, also with the public key as the secret', async () => {
    const claims = { iss: issuer.url, aud: audience, sub: 'robot', exp: seconds() + 600 }
    for (const alg of ['none', 'None', 'NONE'])
      await rejects(`${encoded({ alg })}.${encoded(claims)}.`, /algorithm of the token is not allowed/)
    for (const alg of ['HS256', 'HS384', 'HS512'])
      await rejects(
        await new SignJWT(claims).setProtectedHeader({ alg, kid: 'key-1' }).sign(Buffer.alloc(64, issuer.ca)),
        /algorithm of the token is not allowed/,
      )
    const unsigned = `${encoded({ alg: 'ES256', kid: 'key-1' })}.${encoded(claims)}`
    await rejects(`${unsigned}.`, /signature of the token is invalid/)
    await rejects(`${unsigned}.${Buffer.alloc(64).toString('base64url')}`, /signature of the token is invalid/)
    await rejects(`${encoded({ alg: 'RS256', kid: 'key-1' })}.${encoded(claims)}.AAAA`, /does not publish/)
  })

  test('expired and future tokens are rejected, with five seconds for different clocks', async () => {
    await rejects(await issuer.sign({ exp: seconds() - 30 }), /has expired/)
    await rejects(await issuer.sign({ exp: undefined }), /no expiry/)
    await rejects(await issuer.sign({ exp: `${seconds() + 60}` }), /no expiry/)
    await rejects(await issuer.sign({ nbf: seconds() + 60 }), /not valid yet/)
    await rejects(await issuer.sign({ iat: seconds() + 60 }), /not valid yet/)
    assert.equal(await outcome(await issuer.sign({ iat: seconds() + 2, nbf: seconds() + 2 })), 'ci:robot')
  })

  test('critical extensions, nested and encrypted tokens are rejected', async () => {
    const claims = encoded({ iss: issuer.url, aud: audience, sub: 'robot', exp: seconds() + 600 })
    const head = { alg: 'ES256', kid: 'key-1' }
    await rejects(`${encoded({ ...head, crit: ['exp'], exp: 1 })}.${claims}.AAAA`, /critical header extensions/)
    await rejects(`${encoded({ ...head, b64: false })}.${claims}.AAAA`, /critical header extensions/)
    await rejects(await issuer.sign({}, { header: { cty: 'JWT' } }), /nested tokens/)
    const { publicKey } = await generateKeyPair('RSA-OAEP-256')
    const jwe = new CompactEncrypt(Buffer.from(claims)).setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM' })
    await rejects(await jwe.encrypt(publicKey), /encrypted tokens are not supported/)
  })

  test('malformed tokens are rejected', async () => {
    const head = encoded({ alg: 'ES256', kid: 'key-1' })
    const duplicate = Buffer.from(`{"iss":"${issuer.url}","sub":"a","sub":"admin"}`).toString('base64url')
    await rejects(`${head}.${duplicate}.AAAA`, /without duplicate keys/)
    await rejects(`${head}.${encoded([1])}.AAAA`, /JSON object/)
    await rejects(`${head}.e30.AAAA`, /issuer of the token is not configured/)
    await rejects('e.e.e', /JSON object/)
    await rejects(`${head}.${Buffer.from('[[[['.repeat(500)).toString('base64url')}.AAAA`, /JSON object/)
  })

  test('a changed token is rejected, also after the original was cached', async () => {
    const token = await issuer.sign()
    assert.equal(await outcome(token), 'ci:robot')
    const [head = '', , signature = ''] = token.split('.')
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    await rejects(`${head}.${encoded({ ...claims, sub: 'root' })}.${signature}`, /signature of the token is invalid/)
  })

  test('a large token is rejected, and so are 1 MiB', async () => {
    const { status } = await stage.ask('e'.padEnd(1024 * 1024, 'A'))
    assert.equal(status, 431)
    assert.match(await outcome(await issuer.sign({ sub: 'large', pad: 'x'.repeat(9000) })), /^ci:large$/)
  })

  test('too many groups are rejected, with the limit', async () => {
    const groups = (count: number) => Array.from({ length: count }, (_, index) => `g${index}`)
    assert.equal((await stage.whoami(await issuer.sign({ groups: groups(200) }))).groups.length, 203)
    await rejects(await issuer.sign({ groups: groups(201) }), /more than 200 groups/)
    for (const given of [{ a: 1 }, [1], 7, [['a']]])
      await rejects(await issuer.sign({ groups: given }), /groups of the token/)
  })

  test('usernames that a gateway could not send are rejected', async () => {
    for (const sub of [undefined, '', 7, ['robot'], 'a\nb', 'a ', 'x'.repeat(600)])
      await rejects(await issuer.sign({ sub }), /username/)
  })

  test('a flood of unknown key ids fetches the keys once', async () => {
    const before = issuer.fetches.keys
    const flood = await Promise.all(Array.from({ length: 60 }, (_, index) => issuer.sign({}, { kid: `none-${index}` })))
    const messages = await Promise.all(flood.map(outcome))
    for (const message of messages) assert.match(message, /^401 .*does not publish/)
    assert.ok(issuer.fetches.keys - before <= 1, `${issuer.fetches.keys - before} fetches`)
  })

  test('no token and no signature is in the logs', async () => {
    const log = () => readFileSync(join(stage.server.directory, 'audit.log'), 'utf8')
    const text = stage.server.said() + log()
    for (const token of sent)
      for (const part of token.split('.'))
        if (part.length > 40) assert.ok(!text.includes(part), 'a log contains a part of a token')
  })
})

describe('unknown tokens', () => {
  test('count as guesses, as unknown keys do', async () => {
    const [issuer, stranger] = await Promise.all([startIssuer(), startIssuer()])
    const stage = await openSignIn([entryOf(issuer)], ['--limits-unknown-keys', '3', '--trusted-proxy', '127.0.0.1'])
    const status = async (token: string) =>
      (await stage.ask(token, 'POST', self, {}, { 'x-forwarded-for': '203.0.113.9' })).status
    try {
      const known = await issuer.sign()
      assert.equal(await status(known), 201)
      for (let count = 0; count < 3; count++) assert.equal(await status(await stranger.sign()), 401)
      assert.equal(await status(await stranger.sign()), 429)
      assert.equal(await status(await issuer.sign({ jti: 'new' })), 201, 'valid tokens are never limited')
      assert.equal(await status(known), 201)
    } finally {
      await stage.close()
      await Promise.all([issuer.stop(), stranger.stop()])
    }
  })
})

describe('faults of an issuer', () => {
  let issuer: TestIssuer
  let stage: SignInStage
  before(async () => {
    issuer = await startIssuer()
    await issuer.stop()
    stage = await openSignIn([entryOf(issuer)])
  })
  after(async () => {
    await stage?.close()
    await issuer.stop()
  })

  test('an issuer that is down does not stop the server, and works when it is back', async () => {
    const token = await issuer.sign()
    assert.equal(await stage.outcome(token), '401 the keys of issuer ci could not be fetched; retry later')
    assert.equal((await stage.server.request('POST', self, { body: {} })).status, 201)
    assert.match(stage.server.output(), /fetching the keys of issuer ci failed, retrying/)
    const headers = { Authorization: `Bearer ${stage.server.adminKey}` }
    const text = await (await fetch(`${stage.server.http}/metrics`, { headers })).text()
    assert.match(text, /platform_jwt_issuer_fetch_failures_total\{issuer="ci"\} [1-9]/)
    await issuer.start()
    await soon('the token is accepted', async () => (await stage.outcome(token)) === 'ci:robot')
  })

  test('a new key is fetched when a token uses it, and a withdrawn key ends cached tokens', async () => {
    const old = await issuer.sign()
    assert.equal(await stage.outcome(old), 'ci:robot')
    await issuer.rotate()
    assert.equal(await stage.outcome(await issuer.sign()), 'ci:robot')
    assert.match(await stage.outcome(old), /^401 .*does not publish/)
  })

  test('known keys stay valid while the issuer is down', async () => {
    await issuer.stop()
    assert.equal(await stage.outcome(await issuer.sign({ sub: 'late' })), 'ci:late')
    await issuer.start()
  })
})

describe('wrong documents of an issuer', () => {
  test('are refused: another issuer, plain HTTP, no keys, too large', async () => {
    const issuers = await Promise.all(Array.from({ length: 9 }, () => startIssuer()))
    const answers = (url: string): TestIssuer['answer'][] => [
      { discovery: { issuer: 'https://evil.example.org', jwks_uri: `${url}/keys` } },
      { discovery: { issuer: url, jwks_uri: 'http://192.0.2.1/keys' } },
      { discovery: { issuer: url } },
      { keys: '{"keys":[]}' },
      { keys: 'no json' },
      { keys: JSON.stringify({ keys: [{ kty: 'oct', k: 'AAAA', kid: 'key-1', alg: 'HS256' }] }) },
      { keys: `{"keys":["${'x'.repeat(300_000)}"]}` },
      { status: 500 },
      { status: 302 },
    ]
    for (const [index, issuer] of issuers.entries()) issuer.answer = answers(issuer.url)[index]
    const stage = await openSignIn(issuers.map((issuer, index) => entryOf(issuer, `ci-${index}`)))
    try {
      for (const [index, issuer] of issuers.entries())
        assert.match(
          await stage.outcome(await issuer.sign()),
          // A key set without a usable key counts: the issuer withdrew its keys.
          [3, 5].includes(index)
            ? new RegExp(`^401 the token is signed with a key that issuer ci-${index} does not publish`)
            : new RegExp(`^401 the keys of issuer ci-${index} could not be fetched`),
        )
    } finally {
      await stage.close()
      await Promise.all(issuers.map(issuer => issuer.stop()))
    }
  })
})
