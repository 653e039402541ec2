// A direct-cluster token that the management API refuses: the audit record names its user, and nobody is authenticated (D31).

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { send } from '../support/direct-http.ts'
import { openDirectServer } from '../support/direct-server.ts'

const ours = '/kubernetes/management/apis/management.platform.sh/v1'
let time = Date.UTC(2026, 0, 2)
let noted: { readonly [name: string]: string } | undefined
let server: Awaited<ReturnType<typeof openDirectServer>>
let token: string
let key: { readonly metadata: { readonly name: string; readonly uid: string }; readonly spec: { readonly key: string } }

const ask = (credential: string, method: string, url: string, body?: object) =>
  send(server.handle, {
    method,
    url: `${ours}/${url}`,
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
const mint = async (spec: object): Promise<string> =>
  JSON.parse((await ask(key.spec.key, 'POST', 'directclusterendpointtokens', { spec })).text).status.token

/** The annotations of a refused request. A new second, because the number of checks in one is limited. */
async function refusedWith(credential: string, method = 'GET', body?: object) {
  time += 1000
  const { code, text } = await ask(credential, method, 'teams', body)
  assert.equal(code, 401, text)
  assert.match(text, /direct-cluster token, which is for a gateway/)
  assert.doesNotMatch(text, /zoe/)
  return noted
}

before(async () => {
  server = await openDirectServer({
    now: () => time,
    observe: ({ exchange }) => {
      noted = exchange.auditContext?.noted
    },
  })
  const made = await ask(server.adminKey, 'POST', 'ownedaccesskeys', { spec: { user: 'zoe' } })
  key = JSON.parse(made.text)
  token = await mint({ ttl: 600 })
})
after(() => server.close())

const claimsIn = (text: string) => JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString())
const notes = () => ({
  'platform.sh/rejected-user': 'zoe',
  'platform.sh/access-key-uid': key.metadata.uid,
  'platform.sh/token': claimsIn(token).jti,
})

test('a valid token is named, also for a write, and also if it is longer than an access key may be', async () => {
  assert.deepEqual(await refusedWith(token), notes())
  assert.deepEqual(await refusedWith(token, 'POST', { metadata: { name: 'made' } }), notes())
  const clusters = Array.from({ length: 120 }, (_, index) => ({ cluster: `cluster-with-a-long-name-${index}` }))
  const long = await mint({ ttl: 600, scope: { clusters } })
  assert.ok(long.length > 4096)
  assert.equal((await refusedWith(long))?.['platform.sh/rejected-user'], 'zoe')
})

test('a token that this server did not sign names nobody', async () => {
  const [head, , signature] = token.split('.')
  const body = Buffer.from(JSON.stringify({ ...claimsIn(token), sub: 'root' })).toString('base64url')
  assert.equal(await refusedWith([head, body, signature].join('.')), undefined)
  const other = Buffer.from('{"alg":"ES256","typ":"JWT","kid":"other"}').toString('base64url')
  assert.equal(await refusedWith([other, token.split('.')[1], signature].join('.')), undefined)
})

test('a flood is not checked, and the next second is', async () => {
  await refusedWith(token)
  for (let count = 0; count < 30; count++) await ask(token, 'GET', 'teams')
  assert.equal(noted, undefined)
  assert.deepEqual(await refusedWith(token), notes())
})

test('an expired token, and one whose key is deleted, are named', async () => {
  assert.equal((await ask(server.adminKey, 'DELETE', `ownedaccesskeys/${key.metadata.name}`)).code, 200)
  assert.deepEqual(await refusedWith(token), notes())
  time += 700_000
  assert.deepEqual(await refusedWith(token), notes())
})
