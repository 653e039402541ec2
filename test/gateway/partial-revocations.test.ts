// Revocations of a part of the tokens of a user: by group, by time, or only tokens and no access keys (D22, D33).

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { claimsFor, openBackend, openTestGateway, type TestGateway } from './in-process.ts'

const pods = '/kubernetes/cluster/prod/api/v1/pods'
const crew = 'platform:team:crew'
let gateway: TestGateway
afterEach(() => gateway.close())

/** Access keys here are called `<user>,<group>,…`; `all` are their groups. */
async function open(): Promise<void> {
  const backend = await openBackend((request, response) => {
    if (request.url?.includes('watch')) response.writeHead(200).flushHeaders()
    else response.end('{}')
  })
  const review = async (key: string) => {
    const [username = '', ...groups] = key.split(',')
    return { caller: { username, groups }, keyUid: `uid-of-${username}` }
  }
  gateway = await openTestGateway({ backend, review })
}
const get = (secret: string, query = '') =>
  fetch(`${gateway.url}${pods}${query}`, { headers: { Authorization: `Bearer ${secret}` } })
const statusOf = async (secret: string) => (await get(secret)).status
const token = (sub: string, groups: readonly string[], over: object = {}) =>
  gateway.sign(claimsFor({ sub, groups, ...over }))
const heard = (count: number) => eventually('it is heard', async () => gateway.revocations.size === count)

test('only tokens that also have the group are affected, by user and by group', async () => {
  await open()
  const [inside, outside] = [await token('ada', [crew]), await token('ada', ['ops'])]
  const [night, day] = [await token('bob', ['night', crew]), await token('bob', ['night'])]
  await gateway.revoke({ users: ['ada'], groups: ['night'], carrying: crew })
  await heard(1)
  assert.deepEqual(await Promise.all([inside, outside, night, day].map(statusOf)), [401, 200, 401, 200])
  assert.equal(await statusOf(await token('eve', [crew])), 200)
  await gateway.revoke({ users: ['ada'], carrying: 'platform:team:other' })
  await heard(2)
  assert.deepEqual(await Promise.all([inside, outside].map(statusOf)), [401, 200], 'each with its own group')
})

test('the same applies to streams of an access key', async () => {
  await open()
  const [cut, stays] = [await get(`ada,${crew}`, '?watch=1'), await get('ada,ops', '?watch=1')]
  await gateway.revoke({ users: ['ada'], carrying: crew })
  await assert.rejects(cut.text())
  assert.deepEqual([gateway.streams.open, gateway.streams.cut], [1, 1])
  await stays.body?.cancel()
})

test('a name with an earlier time affects tokens until then; others are affected until notBefore', async () => {
  await open()
  const now = Math.floor(Date.now() / 1000)
  const issued = (sub: string, ago: number) => token(sub, [], { iat: now - ago, nbf: now - ago })
  const tokens = [await issued('ada', 100), await issued('ada', 50), await issued('bob', 50)]
  const at = (ago: number) => new Date((now - ago) * 1000).toISOString()
  await gateway.revoke({ users: ['ada', 'bob'], since: { ada: at(80) }, notBefore: at(20) })
  await heard(1)
  assert.deepEqual(await Promise.all(tokens.map(statusOf)), [401, 200, 401])
})

test('a revocation of tokens only keeps streams of access keys', async () => {
  await open()
  const stays = await get('ada', '?watch=1')
  const claims = { 'platform.sh': { kind: 'User', name: 'ada', key: 'uid-of-ada' } }
  const [first, second] = [await token('ada', [], claims), await token('eve', [])]
  await gateway.revoke({ keyUID: 'uid-of-ada', tokensOnly: true })
  await heard(1)
  await eventually('its token is refused', async () => (await statusOf(first)) === 401)
  assert.equal(await statusOf(second), 200)
  assert.deepEqual([gateway.streams.open, gateway.streams.cut], [1, 0])
  await stays.body?.cancel()
})
