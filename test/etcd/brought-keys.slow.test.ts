// Two replicas never accept one key that a client brings for two objects, however close the writes are (D12).

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type Replicas, startReplicas } from '../support/replicas.ts'
import type { Answer } from '../support/request.ts'
import type { Server } from '../support/server.ts'

const keys = '/apis/management.platform.sh/v1/ownedaccesskeys'
const merge = { 'content-type': 'application/merge-patch+json' }
const rounds = 20

describe('keys that clients bring to two replicas', () => {
  let replicas: Replicas
  let one: Server
  let two: Server
  before(async () => {
    // Every refusal counts as a guess.
    replicas = await startReplicas({ args: ['--limits-unknown-keys', '0'] })
    ;[one, two] = replicas.servers as [Server, Server]
  })
  after(() => replicas.close())

  const newKey = () => randomBytes(32).toString('hex')
  const create = (server: Server, name: string, key?: string) =>
    server.request('POST', keys, { body: { metadata: { name }, spec: { user: name, ...(key ? { key } : {}) } } })
  const replace = (server: Server, name: string, key: string) =>
    server.request('PATCH', `${keys}/${name}`, { headers: merge, body: { spec: { key } } })

  /** Of two concurrent writes, exactly one succeeds. */
  async function race(writes: readonly [Promise<Answer>, Promise<Answer>], key: string): Promise<void> {
    const answers = await Promise.all(writes)
    const [refused, ...others] = answers.filter(({ status }) => status >= 300)
    assert.ok(refused && others.length === 0, answers.map(({ status }) => status).join(' '))
    assert.equal(refused.status, 422, refused.text)
    assert.equal(refused.body.details.causes[0].field, 'spec.key')
    assert.ok(!refused.text.includes(key), 'the answer does not contain the key')
  }

  test('of two creates with one key, one wins', async () => {
    for (let i = 0; i < rounds; i++) {
      const key = newKey()
      await race([create(one, `a${i}`, key), create(two, `b${i}`, key)], key)
    }
  })

  test('also while other keys of the same slot are written', async () => {
    const slotOf = (key: string) => hash('sha256', key, 'hex').slice(0, 3)
    const found = new Map<string, string[]>()
    let sharing: string[] = []
    while (sharing.length < 6) {
      const key = newKey()
      sharing = [...(found.get(slotOf(key)) ?? []), key]
      found.set(slotOf(key), sharing)
    }
    await Promise.all(
      sharing.map((key, i) => race([create(one, `slot-one-${i}`, key), create(two, `slot-two-${i}`, key)], key)),
    )
  })

  test('of two updates to one key, one wins, and the key is free after its object is deleted', async () => {
    const key = newKey()
    for (let i = 0; i < rounds; i++) {
      await create(one, 'c')
      await create(two, 'd')
      await race([replace(one, 'c', key), replace(two, 'd', key)], key)
      for (const name of ['c', 'd']) assert.equal((await one.request('DELETE', `${keys}/${name}`)).status, 200)
    }
  })
})
