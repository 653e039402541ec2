// Two replicas never give one username to two teams, however close the writes are (D23).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Replicas, startReplicas } from '../support/replicas.ts'
import type { Answer } from '../support/request.ts'
import type { Server } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const teams = '/apis/management.platform.sh/v1/teams'
const merge = { 'content-type': 'application/merge-patch+json' }
const rounds = 25

describe('usernames of teams on two replicas', () => {
  let replicas: Replicas
  let one: Server
  let two: Server
  before(async () => {
    replicas = await startReplicas()
    ;[one, two] = replicas.servers as [Server, Server]
  })
  after(() => replicas.close())

  const create = (server: Server, name: string, username?: string) =>
    server.request('POST', teams, { body: { metadata: { name }, ...(username ? { spec: { username } } : {}) } })
  const rename = (server: Server, name: string, username: string) =>
    server.request('PATCH', `${teams}/${name}`, { headers: merge, body: { spec: { username } } })

  /** Of two concurrent writes, exactly one succeeds. The answer to the other names the field that is taken. */
  async function race(writes: readonly [Promise<Answer>, Promise<Answer>], fields: readonly string[]): Promise<void> {
    const answers = await Promise.all(writes)
    const [refused, ...others] = answers.filter(({ status }) => status >= 300)
    assert.ok(refused && others.length === 0, answers.map(({ text }) => text).join('\n'))
    assert.equal(refused.status, 422, refused.text)
    const [cause] = refused.body.details.causes
    assert.equal(cause.reason, 'FieldValueDuplicate')
    assert.ok(fields.includes(cause.field), cause.field)
  }

  test('of two creates with one username, one wins', async () => {
    for (let i = 0; i < rounds; i++)
      await race([create(one, `a${i}`, `name-a${i}`), create(two, `b${i}`, `name-a${i}`)], ['spec.username'])
  })

  test('of two updates to one username, one wins', async () => {
    for (let i = 0; i < rounds; i++) {
      await create(one, `c${i}`)
      await create(two, `d${i}`)
      await race([rename(one, `c${i}`, `name-c${i}`), rename(two, `d${i}`, `name-c${i}`)], ['spec.username'])
    }
  })

  test('of a team and the username of another, one wins, whatever the username of the first', async () => {
    for (let i = 0; i < rounds; i++) {
      await create(one, `e${i}`)
      const named = create(one, `name-e${i}`, i % 2 ? `other-e${i}` : undefined)
      await race([named, rename(two, `e${i}`, `name-e${i}`)], ['metadata.name', 'spec.username'])
    }
  })

  test('a username is free again after its team is renamed or deleted', async () => {
    await create(one, 'first', 'shared')
    assert.equal((await rename(two, 'first', 'moved')).status, 200)
    await race([create(one, 'second', 'shared'), create(two, 'third', 'shared')], ['spec.username'])
    for (const name of ['second', 'third']) await one.request('DELETE', `${teams}/${name}`)
    await race([create(one, 'shared'), rename(two, 'first', 'shared')], ['metadata.name', 'spec.username'])
  })

  test('the record of a username is deleted with its team', async () => {
    const hasRecord = async () => {
      const body = JSON.stringify({ key: btoa('\0'), range_end: btoa('\0'), keys_only: true })
      const response = await fetch(`${replicas.etcd.endpoints[0]}/v3/kv/range`, { method: 'POST', body })
      const { kvs } = (await response.json()) as { kvs: { key: string }[] }
      return kvs.some(({ key }) => /teamusernamerecords.*\/right$/.test(atob(key)))
    }
    assert.equal((await create(one, 'left', 'right')).status, 201)
    assert.equal(await hasRecord(), true)
    assert.equal((await one.request('DELETE', `${teams}/left`)).status, 200)
    await eventually('the record is gone', async () => !(await hasRecord()))
  })
})
