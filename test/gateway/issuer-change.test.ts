// Another issuer or management API with the same name: the gateway verifies earlier credentials again, for requests and open streams.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { type CryptoKey, importJWK } from 'jose'
import { type CredentialsOptions, openCredentials } from '../../src/gateway/auth/authenticator.ts'
import type { Request } from '../../src/serving/exchange.ts'
import { eventually } from '../support/wire.ts'
import { kid, makeKeys, type Options, openBackend, openTestGateway, type TestGateway } from './in-process.ts'

const pods = '/kubernetes/cluster/prod/api/v1/pods'
let gateway: TestGateway
afterEach(() => gateway.close())

async function open(options: Partial<Options> = {}): Promise<void> {
  const backend = await openBackend((request, response) => {
    if (request.url?.includes('watch')) response.writeHead(200).flushHeaders()
    else response.end('{}')
  })
  gateway = await openTestGateway({ backend, ...options })
}
const get = (key: string, query = '') =>
  fetch(`${gateway.url}${pods}${query}`, { headers: { Authorization: `Bearer ${key}` } })
const statusOf = async (key: string) => (await get(key)).status

test('tokens of a key that the issuer replaced under the same id end, with their streams; tokens of its other keys continue', async () => {
  await open()
  gateway.published.push({ ...gateway.publicJwk, kid: 'second' })
  const [gone, stays] = [await gateway.sign(), await gateway.sign(undefined, { kid: 'second' })]
  const [cut, other] = [await get(gone, '?watch=1'), await get(stays, '?watch=1')]
  assert.deepEqual([await statusOf(gone), await statusOf(stays)], [200, 200])
  gateway.published[0] = makeKeys().publicJwk
  // An id that is not known has the keys fetched again.
  assert.equal(await statusOf(await gateway.sign(undefined, { kid: 'third' })), 401)
  assert.deepEqual([await statusOf(gone), await statusOf(stays)], [401, 200])
  await assert.rejects(cut.text())
  await eventually('the other one was looked at', async () => gateway.streams.open === 1)
  assert.equal(gateway.streams.cut, 1)
  await other.body?.cancel()
})

test('streams of access keys continue or end according to the current management API', async () => {
  let generation = 0
  const asked: string[] = []
  await open({
    generation: () => generation,
    review: async key => {
      asked.push(key)
      if (generation > 0 && key !== 'plat_ada') return undefined
      return { caller: { username: 'ada', groups: ['system:authenticated'] }, keyUid: key }
    },
  })
  const [stays, cut] = [await get('plat_ada', '?watch=1'), await get('plat_eve', '?watch=1')]
  generation++
  gateway.streams.recheck()
  await assert.rejects(cut.text())
  assert.deepEqual([await statusOf('plat_ada'), await statusOf('plat_eve')], [200, 401])
  assert.deepEqual(asked, ['plat_ada', 'plat_eve', 'plat_ada', 'plat_eve'], 'each once more')
  assert.deepEqual([gateway.streams.open, gateway.streams.cut], [1, 1])
  await stays.body?.cancel()
})

test('a stream ends if its user has another identity or fewer permissions at the current management API, because the cluster knows the old one', async () => {
  let generation = 0
  const was = { username: 'ada', groups: ['system:authenticated'] }
  const now: { readonly [key: string]: object } = {
    plat_same: was,
    plat_other: { ...was, username: 'bob' },
    plat_less: { ...was, scope: { clusters: [{ cluster: 'prod' }] } },
  }
  await open({
    generation: () => generation,
    review: async key => ({ caller: (generation ? now[key] : was) as typeof was, keyUid: key }),
  })
  const [stays, ...cut] = await Promise.all(Object.keys(now).map(key => get(key, '?watch=1')))
  generation++
  gateway.streams.recheck()
  for (const one of cut) await assert.rejects(one.text())
  assert.deepEqual([gateway.streams.open, gateway.streams.cut], [1, 2])
  await stays?.body?.cancel()
})

test('a token is invalid if its key is removed during the verification', async () => {
  await open()
  const key = (await importJWK(gateway.publicJwk, 'ES256')) as CryptoKey
  let losses = 0
  const { principalOf } = credentialsWith({
    keyOf: async id => (id === kid && losses++ === 0 ? key : undefined),
    get keyChanges() {
      return losses
    },
  })
  const request = await signed()
  await assert.rejects(async () => principalOf(request), /a key that the issuer does not publish/)
})

test('a token whose key was requested from the previous issuer is verified with the keys of the current one', async () => {
  await open()
  const key = (await importJWK(gateway.publicJwk, 'ES256')) as CryptoKey
  let losses = 0
  const { principalOf } = credentialsWith({
    keyOf: async () => {
      // Others take its place meanwhile.
      if (losses > 0) return key
      losses++
      return undefined
    },
    get keyChanges() {
      return losses
    },
  })
  const { jti, generation } = await principalOf(await signed())
  assert.deepEqual([jti !== undefined, generation], [true, 1])
})

const credentialsWith = (keySet: CredentialsOptions['keySet']) =>
  openCredentials({
    issuer: () => 'https://issuer.test',
    keySet,
    review: async () => undefined,
    order: () => 0,
    addressOf: () => '',
    now: Date.now,
  })
const signed = async () =>
  ({ headers: { authorization: `Bearer ${await gateway.sign()}` }, rawHeaders: [] }) as unknown as Request
