// Limits of machine tokens: their lifetime, guesses by address, and verifications that wait for an issuer.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must } from '../access/people.ts'
import { eventually } from '../support/wire.ts'
import { configHeader, problemsOf } from './config-problems.ts'
import { exchange } from './exchange.ts'
import { entryOf, openSignIn, type SignInStage, self } from './sign-in-stage.ts'
import { seconds, startIssuer, type TestIssuer } from './test-issuer.ts'

const reviews = '/apis/authentication.k8s.io/v1/tokenreviews'

describe('the lifetime of tokens', () => {
  let issuer: TestIssuer
  let short: TestIssuer
  let stage: SignInStage
  before(async () => {
    ;[issuer, short] = await Promise.all([startIssuer(), startIssuer()])
    stage = await openSignIn([entryOf(issuer), entryOf(short, 'short', { maxTokenLifetime: '10m' })])
  })
  after(async () => {
    await stage?.close()
    await Promise.all([issuer.stop(), short.stop()])
  })

  test('is at most a day by default', async () => {
    const day = 24 * 3600
    assert.equal(await stage.outcome(await issuer.sign({ exp: seconds() + day })), 'ci:robot')
    const long = { iat: seconds() - 10, exp: seconds() + day }
    assert.match(await stage.outcome(await issuer.sign(long)), /^401 .*lifetime.*maxTokenLifetime/)
    assert.match(
      await stage.outcome(await issuer.sign({ iat: undefined, exp: seconds() + 2 * day })),
      /^401 .*lifetime/,
    )
    assert.equal(await stage.outcome(await issuer.sign({ iat: undefined })), 'ci:robot')
  })

  test('is what the entry says', async () => {
    assert.equal(await stage.outcome(await short.sign()), 'short:robot')
    const long = await short.sign({ exp: seconds() + 700 })
    assert.match(await stage.outcome(long), /^401 .*lifetime/)
    assert.equal((await exchange(stage.server, long)).status, 400)
  })

  test('is checked in auth.yaml', async () => {
    const file = (text: string) => `${configHeader}jwt:
  - name: ci
    issuer: { url: 'https://issuer.example.org', audiences: [a] }
    claimMappings: { username: { claim: sub } }
    maxTokenLifetime: ${text}
`
    assert.deepEqual(await problemsOf(file('36h')), [])
    for (const text of ['soon', '0s', '800d'])
      assert.match((await problemsOf(file(text))).join('\n'), /^7:\d+: jwt\[0\]\.maxTokenLifetime must be /)
  })
})

describe('the id of a token', () => {
  test('is not the same for a jti and an equal sub', async () => {
    const issuer = await startIssuer()
    const stage = await openSignIn([entryOf(issuer)])
    try {
      const idOf = async (claims: object) => {
        const body = { spec: { token: await issuer.sign({ ...claims }) } }
        const { status } = await must(stage.server.request('POST', reviews, { body }))
        return status.user.extra['authentication.platform.sh/key-uid'][0]
      }
      const ids = [
        await idOf({ sub: 'a', jti: 'b' }),
        await idOf({ sub: 'b' }),
        await idOf({ sub: 'c', jti: 'sub=b' }),
        await idOf({ sub: 'd', jti: 'x'.repeat(200) }),
        await idOf({ sub: 'x'.repeat(200) }),
      ]
      assert.equal(new Set(ids).size, ids.length, ids.join('\n'))
      assert.match(ids[0], /^jwt:[0-9a-f]{16}:b$/)
      assert.ok(
        ids.every(id => /^jwt:[0-9a-f]{16}:[\w%.~=-]{1,140}$/.test(id)),
        ids.join('\n'),
      )
    } finally {
      await stage.close()
      await issuer.stop()
    }
  })
})

describe('floods of tokens', () => {
  let issuer: TestIssuer
  let slow: TestIssuer
  let stage: SignInStage
  const from = (address: string) => ({ 'X-Forwarded-For': address })
  const statusOf = async (token: string, address: string) =>
    (await stage.ask(token, 'POST', undefined, {}, from(address))).status
  before(async () => {
    ;[issuer, slow] = await Promise.all([startIssuer(), startIssuer()])
    stage = await openSignIn(
      [entryOf(issuer), entryOf(slow, 'slow')],
      ['--trusted-proxy', '127.0.0.1', '--limits-unknown-keys', '5'],
    )
  })
  after(async () => {
    await stage?.close()
    await Promise.all([issuer.stop(), slow.stop()])
  })

  test('an address that sent many invalid tokens gets 429 for the next one; valid tokens are never limited', async () => {
    const known = await issuer.sign({ sub: 'known' })
    assert.equal(await statusOf(known, '10.0.0.1'), 201)
    const bad = async () => `${(await issuer.sign({ n: Math.random() })).slice(0, -8)}AAAAAAAA`
    for (let count = 0; count < 5; count++) assert.equal(await statusOf(await bad(), '10.0.0.1'), 401)
    assert.equal(await statusOf(await bad(), '10.0.0.1'), 429)
    assert.equal(await statusOf(await issuer.sign({ sub: 'new' }), '10.0.0.1'), 201)
    assert.equal(await statusOf(known, '10.0.0.1'), 201)
    assert.equal(await statusOf(await issuer.sign({ sub: 'other' }), '10.0.0.2'), 201)
  })

  test('invalid tokens at the exchange are guesses too', async () => {
    const bad = async () => `${(await issuer.sign({ n: Math.random() })).slice(0, -8)}AAAAAAAA`
    for (let count = 0; count < 5; count++)
      assert.equal((await exchange(stage.server, await bad(), {}, from('10.0.1.1'))).status, 400)
    const { status, headers, body } = await exchange(stage.server, await issuer.sign(), {}, from('10.0.1.1'))
    assert.equal(status, 429)
    assert.ok(Number(headers.get('retry-after')) > 0)
    assert.ok(body.error)
    assert.equal((await exchange(stage.server, await issuer.sign(), {}, from('10.0.1.2'))).status, 200)
  })

  test('tokens that wait for one issuer do not block those of another', async () => {
    assert.equal(await statusOf(await slow.sign(), '10.0.2.1'), 201)
    await slow.rotate()
    const tokens = await Promise.all(Array.from({ length: 150 }, (_, index) => slow.sign({ jti: String(index) })))
    slow.hold()
    try {
      // Without the pool of connections of other requests, which is smaller than the limit.
      const waiting = tokens.map(async (token, index) => {
        const headers = { ...from(`10.1.${index % 50}.1`), Authorization: `Bearer ${token}` }
        const sent = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body: '{}' }
        return (await fetch(`${stage.server.http}/kubernetes/management${self}`, sent)).status
      })
      await eventually('the server fetches the keys', async () => slow.held() > 0)
      await Promise.race(waiting) // the first one that is refused
      assert.equal(await statusOf(await issuer.sign({ sub: 'unaffected' }), '10.0.2.2'), 201)
      slow.release()
      const found = await Promise.all(waiting)
      assert.ok(found.includes(429), 'no limit for one issuer')
      assert.ok(found.includes(201))
    } finally {
      slow.release()
    }
  })

  test('one address cannot use all places of an issuer', async () => {
    // An unknown key id causes a fetch at most every 30 seconds, so this needs another server.
    const lazy = await startIssuer()
    const own = await openSignIn([entryOf(lazy)], ['--trusted-proxy', '127.0.0.1'])
    try {
      assert.equal(await own.outcome(await lazy.sign()), 'ci:robot')
      await lazy.rotate()
      lazy.hold()
      const ask = async (claims: object, address: string) =>
        (await own.ask(await lazy.sign({ ...claims }), 'POST', undefined, {}, from(address))).status
      const flood = Array.from({ length: 60 }, (_, index) => ask({ jti: `a${index}` }, '10.0.3.1'))
      await eventually('the server fetches the keys', async () => lazy.held() > 0)
      const patient = ask({ jti: 'b' }, '10.0.3.2')
      lazy.release()
      assert.equal(await patient, 201)
      const found = await Promise.all(flood)
      assert.ok(found.includes(429) && found.includes(201), String(found))
    } finally {
      lazy.release()
      await own.close()
      await lazy.stop()
    }
  })
})
