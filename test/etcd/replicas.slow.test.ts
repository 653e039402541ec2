// Replicas on one etcd: what is written through one is seen through the others, at once and in order.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Replicas, startReplicas } from '../support/replicas.ts'
import type { Server } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const ours = '/apis/management.platform.sh/v1'
const teams = `${ours}/teams`
const keys = `${ours}/ownedaccesskeys`
const secrets = `${ours}/namespaces/default/sharedsecrets`

describe('replicas', () => {
  let replicas: Replicas
  let one: Server
  let two: Server
  before(async () => {
    replicas = await startReplicas()
    ;[one, two] = replicas.servers as [Server, Server]
  })
  after(() => replicas.close())

  const makeKey = async (user: string) => {
    const { body } = await one.request('POST', keys, { body: { metadata: { generateName: 'k-' }, spec: { user } } })
    return { name: body.metadata.name as string, key: body.spec.key as string }
  }

  test('a read through one replica shows the write through another', async () => {
    for (let i = 0; i < 50; i++) {
      const [writer, reader] = i % 2 ? [one, two] : [two, one]
      const { body } = await writer.request('POST', teams, { body: { metadata: { name: `team-${i}` } } })
      const read = await reader.request('GET', `${teams}/team-${i}`)
      assert.equal(read.status, 200)
      assert.equal(read.body.metadata.resourceVersion, body.metadata.resourceVersion)
      const list = await reader.request('GET', teams)
      assert.ok(Number(list.body.metadata.resourceVersion) >= Number(body.metadata.resourceVersion))
      assert.ok(list.body.items.some((item: { metadata: { name: string } }) => item.metadata.name === `team-${i}`))
    }
  })

  test('a replica that starts later has the objects, their versions, and the history for watches', async () => {
    const { body: list } = await one.request('GET', teams)
    await one.request('POST', teams, { body: { metadata: { name: 'later' } } })
    await one.request('DELETE', `${teams}/later`)
    const three = await replicas.add()
    const { body: same } = await three.request('GET', teams)
    assert.deepEqual(same.items, list.items)
    const seen: string[] = []
    for await (const { type, object } of three.watch(
      `${teams}?watch=1&resourceVersion=${list.metadata.resourceVersion}`,
    )) {
      seen.push(`${type} ${object.metadata.name}`)
      if (seen.length === 2) break
    }
    assert.deepEqual(seen, ['ADDED later', 'DELETED later'])
  })

  test('a watch continues on another replica, without gaps or repeats', async () => {
    const { body: list } = await one.request('GET', teams)
    let version = list.metadata.resourceVersion as string
    const seen: string[] = []
    for (let round = 0; round < 6; round++) {
      const [writer, watcher] = round % 2 ? [one, two] : [two, one]
      const names = Array.from({ length: 5 }, (_, i) => `w-${round}-${i}`)
      for (const name of names) await writer.request('POST', teams, { body: { metadata: { name } } })
      let left = names.length
      for await (const { object } of watcher.watch(`${teams}?watch=1&resourceVersion=${version}`)) {
        seen.push(object.metadata.name)
        version = object.metadata.resourceVersion
        if (--left === 0) break
      }
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 6 }, (_, round) => Array.from({ length: 5 }, (_, i) => `w-${round}-${i}`)).flat(),
    )
  })

  test('a deleted key is refused by every replica at once, and its watches end', async () => {
    const { name, key } = await makeKey('dave')
    assert.equal((await two.request('GET', teams, { key })).status, 200)
    const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const events = two.watch(`${teams}?watch=1&${initial}`, { key })
    // A bookmark follows the initial state, so the watch is open.
    assert.equal((await events.next()).done, false)
    const ended = (async () => {
      for await (const _ of events);
    })()
    await one.request('DELETE', `${keys}/${name}`)
    assert.equal((await two.request('GET', teams, { key })).status, 401)
    await ended
  })

  test('a permission that was taken through one replica is gone at the other, in filtered lists and watches, too', async () => {
    const { key } = await makeKey('erin')
    const access = { name: 'erin', users: ['erin'], verbs: ['get', 'list', 'watch'] }
    await one.request('POST', secrets, {
      body: { metadata: { name: 'shared' }, spec: { data: { a: btoa('1') }, access: [access] } },
    })
    const { body: list } = await two.request('GET', secrets, { key })
    assert.equal(list.items.length, 1)
    // A controller may write the object before.
    const watching = (async () => {
      for await (const { type } of two.watch(`${secrets}?watch=1&resourceVersion=${list.metadata.resourceVersion}`, {
        key,
      }))
        if (type === 'DELETED') return
      assert.fail('the watch ended without the event')
    })()
    await one.request('PATCH', `${secrets}/shared`, {
      body: { spec: { access: null } },
      headers: { 'content-type': 'application/merge-patch+json' },
    })
    assert.equal((await two.request('GET', `${secrets}/shared`, { key })).status, 403)
    assert.equal((await two.request('GET', secrets, { key })).body.items.length, 0)
    await watching
  })

  test('of concurrent creates of one name through different replicas, one succeeds', async () => {
    for (let i = 0; i < 20; i++) {
      const body = { metadata: { name: `race-${i}` } }
      const answers = await Promise.all([one, two, one, two].map(server => server.request('POST', teams, { body })))
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 409, 409, 409])
    }
  })

  test('concurrent patches through different replicas are all applied', async () => {
    await one.request('POST', teams, { body: { metadata: { name: 'patched' } } })
    const patch = (server: Server, label: string) =>
      server.request('PATCH', `${teams}/patched`, {
        body: { metadata: { labels: { [label]: 'yes' } } },
        headers: { 'content-type': 'application/merge-patch+json' },
      })
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all([patch(one, `a${round}`), patch(two, `b${round}`)])
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      )
    }
    const { body } = await two.request('GET', `${teams}/patched`)
    assert.equal(Object.keys(body.metadata.labels).length, 20)
  })

  test('the last use of a key at one replica is known at the other within 30 seconds', async () => {
    const { name, key } = await makeKey('frank')
    await two.request('GET', teams, { key })
    await eventually('the time arrives', async () => {
      const { body } = await one.request('GET', `${keys}/${name}`)
      return body.status?.lastActivity !== undefined
    })
  })
})
