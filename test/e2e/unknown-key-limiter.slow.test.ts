// The limit against key guessing, over real sockets: which clients must wait, which never, and the operator's metrics.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { makeKey } from '../../src/kinds/key-format.ts'
import { type Server, startServer } from '../support/server.ts'
import { base, group, openWire, type Wire } from '../support/wire.ts'

const unknown = () => makeKey(size => randomBytes(size))
const from = (address: string) => ({ 'x-forwarded-for': address })
const reviews = `${base}/apis/authentication.k8s.io/v1/tokenreviews`

/** The codes of so many tries with as many unknown keys, in order. */
async function tries(wire: Wire, count: number, headers: { [name: string]: string } = {}): Promise<number[]> {
  const codes: number[] = []
  for (let index = 0; index < count; index++)
    codes.push((await wire(`${group}/teams`, { key: unknown(), headers })).code)
  return codes
}
const times = (count: number, code: number) => new Array<number>(count).fill(code)

describe('guessing keys behind a trusted proxy', () => {
  let server: Server
  let wire: Wire
  before(async () => {
    server = await startServer({ storage: 'memory', args: ['--trusted-proxy', '127.0.0.1'] })
    wire = openWire(server)
  })
  after(() => server.stop())

  const metric = async (line: RegExp) => Number(line.exec((await wire('/metrics')).text)?.[1])

  test('after 20 unknown keys within five minutes an address gets 429 with Retry-After', async () => {
    const address = '203.0.113.9'
    assert.deepEqual(await tries(wire, 21, from(address)), [...times(20, 401), 429])
    const refused = await wire(`${group}/teams`, { key: unknown(), headers: from(address) })
    assert.equal(refused.code, 429)
    assert.equal(refused.json.reason, 'TooManyRequests')
    const left = Number(refused.headers['retry-after'])
    assert.ok(left > 200 && left <= 300, `it must wait for nearly five minutes, but gets ${left} s`)
    assert.equal(refused.json.details.retryAfterSeconds, left)
    assert.match(refused.json.message, new RegExp(`unknown keys.* ${left} s`))
  })

  test('a known key is never rejected for it, nor is a missing, disabled or malformed one', async () => {
    const headers = from('203.0.113.9')
    const made = await wire(`${group}/ownedaccesskeys`, { method: 'POST', body: '{"spec":{"disabled":true}}' })
    assert.equal((await wire(`${group}/teams`, { headers })).code, 200)
    assert.equal((await wire(`${group}/teams`, { headers, key: made.json.spec.key })).code, 401)
    assert.equal((await wire(`${group}/teams`, { headers, key: '' })).code, 401)
    assert.equal((await wire(`${base}/version`, { headers, key: '' })).code, 200)
  })

  test('other addresses are not affected; an IPv6 /64 counts as one address', async () => {
    assert.deepEqual(await tries(wire, 1, from('203.0.113.10')), [401])
    const codes: number[] = []
    for (let index = 0; index < 21; index++) codes.push(...(await tries(wire, 1, from(`2001:db8::${index + 1}`))))
    assert.deepEqual(codes, [...times(20, 401), 429])
  })

  test('forwarded addresses of the client do not count: the last untrusted hop does', async () => {
    const codes: number[] = []
    for (let index = 0; index < 21; index++)
      codes.push(...(await tries(wire, 1, from(`198.51.100.${index}, 203.0.113.77`))))
    assert.deepEqual(codes, [...times(20, 401), 429])
  })

  test('the proxy itself is exempt', async () => {
    assert.deepEqual(await tries(wire, 25), times(25, 401))
  })

  test('a direct-cluster token does not count as a guess, and gets a hint, however often and however long it is', async () => {
    const headers = from('203.0.113.80')
    const scope = {
      virtualClusters: Array.from({ length: 150 }, (_, at) => ({ project: 'web', virtualCluster: `v${at}` })),
    }
    for (const spec of [{}, { scope }]) {
      const body = JSON.stringify({ spec })
      const { json } = await wire(`${group}/directclusterendpointtokens`, { method: 'POST', body })
      const key = json.status.token
      for (const path of [`${group}/teams`, '/kubernetes/cluster/prod/api'])
        for (let index = 0; index < 25; index++) {
          const answer = await wire(path, { key, headers })
          assert.equal(answer.code, 401)
          assert.match(answer.json.message, /^this is a direct-cluster token, .*gateway.*access key/)
          assert.equal(answer.text.includes(key), false)
        }
      // A truncated token, or one with only the prefix, may be a guess.
      const asked = { key: key.slice(0, -1), headers: from('203.0.113.81') }
      assert.match(
        (await wire(`${group}/teams`, asked)).json.message,
        spec.scope ? /^malformed/ : /^unknown access key$/,
      )
    }
  })

  test('both are counted in the metrics', async () => {
    const failed = await metric(/^platform_unknown_keys_total (\d+)/m)
    const refused = await metric(/^platform_requests_refused_total\{reason="unknown_keys"\} (\d+)/m)
    assert.deepEqual([failed, refused], [20 + 1 + 20 + 20 + 25 + 1, 2 + 1 + 1])
  })

  test('a TokenReview cannot bypass it: after 20 unknown keys the caller must wait, but known keys are still reviewed', async () => {
    const ask = (token: string) => wire(reviews, { method: 'POST', body: JSON.stringify({ spec: { token } }) })
    for (let index = 0; index < 20; index++) {
      const { code, json } = await ask(unknown())
      assert.deepEqual([code, json.status.authenticated], [201, false])
    }
    const refused = await ask(unknown())
    assert.equal(refused.code, 429)
    const left = Number(refused.headers['retry-after'])
    assert.ok(left > 200 && left <= 300, `it gets ${left} s`)
    assert.equal((await ask(server.adminKey)).json.status.authenticated, true)
  })
})

test('loopback is exempt, and an X-Forwarded-For from an untrusted hop changes nothing', async t => {
  const server = await startServer({ storage: 'memory' })
  t.after(() => server.stop())
  assert.deepEqual(await tries(openWire(server), 25, from('203.0.113.9')), times(25, 401))
})

test('limits.unknownKeys sets the limit, and 0 disables it', async () => {
  for (const [limit, expected] of [
    ['3', [...times(3, 401), ...times(22, 429)]],
    ['0', times(25, 401)],
  ] as const) {
    const args = ['--trusted-proxy', '127.0.0.0/8', '--limits-unknown-keys', limit]
    const server = await startServer({ storage: 'memory', args })
    try {
      assert.deepEqual(await tries(openWire(server), 25, from('203.0.113.9')), expected)
    } finally {
      await server.stop()
    }
  }
})

test('a request with two Authorization headers is rejected', async t => {
  const server = await startServer({ storage: 'memory' })
  t.after(() => server.stop())
  const wire = openWire(server)
  const headers = { authorization: [`Bearer ${server.adminKey}`, `Bearer ${unknown()}`] }
  const { code, json } = await wire(`${group}/teams`, { key: '', headers })
  assert.equal(code, 401)
  assert.match(json.message, /more than one Authorization header/)
})
