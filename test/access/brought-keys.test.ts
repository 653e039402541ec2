// Secrets that administrators bring for access keys belong to one key, and the records of them do not accumulate (D12).

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { AccessKeySlot } from '../../src/kinds/access-key-slot.ts'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import { send } from '../support/direct-http.ts'
import { openDirectServer } from '../support/direct-server.ts'
import { startServer } from '../support/server.ts'

const keys = '/apis/management.platform.sh/v1/ownedaccesskeys'
const newKey = () => randomBytes(32).toString('hex')
const slotOf = (key: string) => `slot-${hash('sha256', key, 'hex').slice(0, 3)}`

test('of concurrent writes with one key, exactly one succeeds', async () => {
  const server = await startServer({ inProcess: true })
  try {
    const key = newKey()
    const bring = (name: string) => server.request('POST', keys, { body: { metadata: { name }, spec: { key } } })
    const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => bring(`race-${index}`)))
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, ...Array.from({ length: 11 }, () => 422)])
    for (const { status, body, text } of answers) {
      if (status === 201) continue
      assert.equal(body.details.causes[0].field, 'spec.key')
      assert.ok(!text.includes(key), 'the answer does not contain the key')
    }
  } finally {
    await server.stop()
  }
})

describe('keys that administrators bring', () => {
  let now = Date.UTC(2026, 0, 2)
  let server: Awaited<ReturnType<typeof openDirectServer>>
  before(async () => {
    server = await openDirectServer({ now: () => now })
  })
  after(() => server.close())

  const ask = (method: string, path: string, body?: object) =>
    send(server.handle, {
      method,
      url: `/kubernetes/management${keys}${path}`,
      headers: {
        authorization: `Bearer ${server.adminKey}`,
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      },
      body: body ? JSON.stringify(body) : '',
    })
  const create = async (name: string, key?: string, query = '') =>
    (await ask('POST', query, { metadata: { name }, spec: key ? { key } : {} })).code
  const replace = async (name: string, key: string) => (await ask('PATCH', `/${name}`, { spec: { key } })).code
  const slots = async () => {
    const { items } = await server.apiServer.internalClient.list(AccessKeySlot, {})
    return new Map(items.map(({ ref, object }) => [ref.name, object.spec?.['keys']]))
  }

  test('are listed in a slot, and generated ones are not', async () => {
    const earlier = await slots()
    const key = newKey()
    assert.equal(await create('generated'), 201)
    assert.equal((await ask('POST', '/generated/rotate', {})).code, 201)
    assert.deepEqual(await slots(), earlier)
    assert.equal(await create('listed', key), 201)
    assert.deepEqual((await slots()).get(slotOf(key)), ['listed'])
    const { items } = await server.apiServer.internalClient.list(AccessKeySlot, {})
    const text = JSON.stringify(items.map(({ object }) => object))
    assert.ok(!text.includes(key) && !text.includes(hash('sha256', key, 'hex')), 'neither the key nor its digest')
  })

  test('are generated if the field is empty', async () => {
    const { text } = await ask('POST', '', { metadata: { name: 'empty' }, spec: { key: '' } })
    assert.match(JSON.parse(text).spec.key, /^plat_/)
  })

  test('leave a slot when they change or are deleted', async () => {
    const [first, second, third] = sameSlot(3) as [string, string, string]
    assert.equal(await create('one', first), 201)
    assert.equal(await create('two', second), 201)
    assert.deepEqual((await slots()).get(slotOf(first)), ['one', 'two'])
    assert.equal(await create('three', second), 422)
    assert.equal(await replace('one', newKey()), 200)
    assert.equal((await ask('DELETE', '/two')).code, 200)
    assert.equal(await create('three', third), 201)
    assert.deepEqual((await slots()).get(slotOf(first)), ['three'])
    for (const [name, key] of Object.entries({ four: first, five: second })) assert.equal(await create(name, key), 201)
    assert.equal(await replace('four', first), 200, 'the same key again')
  })

  test('are in use as the old secret of a rotation', async () => {
    const key = newKey()
    assert.equal(await create('rotated', key), 201)
    assert.equal((await ask('POST', '/rotated/rotate', { spec: { overlapSeconds: 60 } })).code, 201)
    assert.equal(await create('early', key), 422)
    assert.equal(await replace('rotated', key), 200, 'back to the key before the rotation')
    assert.equal((await ask('POST', '/rotated/rotate', {})).code, 201)
    assert.equal(await create('late', key), 201)
  })

  test('are not revealed by a dry run, which writes no slot', async () => {
    const [used, free] = [newKey(), newKey()]
    assert.equal(await create('used', used), 201)
    const earlier = await slots()
    for (const key of [used, free]) assert.equal(await create('asked', key, '?dryRun=All'), 201)
    assert.deepEqual(await slots(), earlier)
  })

  test('are not confirmed by the dry run of a change, also during a rotation', async () => {
    assert.equal(await create('guessed'), 201)
    const rotated = await ask('POST', '/guessed/rotate', { spec: { overlapSeconds: 60 } })
    const { key } = JSON.parse(rotated.text).spec
    const login = (refreshToken: string) => ({ oidcLogin: { clientId: 'shop', refreshToken } })
    assert.equal((await ask('PATCH', '/guessed', { spec: login('right') })).code, 200)
    const dryRun = async (spec: object) => (await ask('PATCH', '/guessed?dryRun=All', { spec })).text
    const stored = (await ask('GET', '/guessed')).text
    for (const guess of [{ key }, { key: newKey() }, login('right'), login('wrong')])
      assert.equal(await dryRun(guess), stored)
  })

  test('are not confirmed by the dry run of a longer lifetime, after they have expired', async () => {
    const key = newKey()
    assert.equal((await ask('POST', '', { metadata: { name: 'expired' }, spec: { key, ttl: 60 } })).code, 201)
    now += 120_000
    const revive = async (guess: string, query: string) =>
      (await ask('PATCH', `/expired${query}`, { spec: { key: guess, ttl: 90 } })).code
    assert.deepEqual([await revive(key, '?dryRun=All'), await revive(newKey(), '?dryRun=All')], [200, 200])
    assert.equal(await revive(key, ''), 422)
  })

  test('a session refuses hidden fields, whether a guess is right or wrong', async () => {
    const { connectorData, ...identity } = { connector: 'corp', userId: 'ada', connectorData: 'right' }
    await server.apiServer.internalClient.create(OwnedAccessKey, '', {
      apiVersion: OwnedAccessKey.apiVersion,
      kind: OwnedAccessKey.kind,
      metadata: {
        name: 'session',
        annotations: { 'platform.sh/session': JSON.stringify({ idle: 1000, issuer: 'https://corp' }) },
      },
      spec: { user: 'ada', type: 'Login', key: newKey(), identity: { ...identity, connectorData } },
    })
    for (const query of ['?dryRun=All', ''])
      for (const guess of [connectorData, 'wrong']) {
        const spec = { identity: { connectorData: guess } }
        assert.equal((await ask('PATCH', `/session${query}`, { spec })).code, 403, `${query} ${guess}`)
      }
    assert.equal((await ask('PATCH', '/session', { spec: { disabled: true } })).code, 200)
  })

  test('a dry run refuses a hidden field that is too large', async () => {
    assert.equal(await create('large'), 201)
    const spec = { oidcLogin: { clientId: 'shop', refreshToken: 'x'.repeat(1_100_000) } }
    for (const query of ['?dryRun=All', '']) assert.equal((await ask('PATCH', `/large${query}`, { spec })).code, 413)
  })
})

/** Keys whose digests start with the same characters. */
function sameSlot(count: number): string[] {
  const slot = slotOf(newKey())
  const found: string[] = []
  while (found.length < count) {
    const key = newKey()
    if (slotOf(key) === slot) found.push(key)
  }
  return found
}
