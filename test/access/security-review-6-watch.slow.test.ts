// Findings of the sixth security review: a watch that is not read must not show objects after access to them has ended.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import type { WatchEvent } from '../support/request.ts'
import { must, openStage, type Person, rbac, refused, type Stage, secrets, settled, soon, teams } from './people.ts'

const merge = { 'content-type': 'application/merge-patch+json' }
/** Together far more than the buffers of both sockets hold. */
const count = 40
const data = { password: Buffer.alloc(500_000, 's').toString('base64') }
const names = Array.from({ length: count }, (_, at) => `secret-${at}`)

describe('a watch that is not read', () => {
  let stage: Stage
  let mallory: Person
  before(async () => {
    stage = await openStage()
    mallory = await stage.invite('mallory')
  })
  after(() => stage.close())

  const create = (path: string, name: string, rest: object) =>
    must(stage.admin.ask('POST', path, { metadata: { name }, ...rest }))
  const patch = (path: string, body: object) => must(stage.admin.ask('PATCH', path, body, merge))

  /** Secrets of a namespace of the same name that are shared with a team of this name, whose only member is mallory. */
  async function shareWithTeam(team: string): Promise<string> {
    await create(teams, team, { spec: { users: ['mallory'] } })
    const access = [{ verbs: ['get'], teams: [team] }]
    for (const name of names) await create(secrets(team), name, { spec: { data, access } })
    for (const name of names) await settled(stage.admin, `${secrets(team)}/${name}`)
    return secrets(team)
  }

  /** The response has begun, so the server has read the state that the watch starts from. Nobody reads the events yet. */
  async function openUnread(path: string): Promise<IncomingMessage> {
    const headers = { authorization: `Bearer ${mallory.key}` }
    const request = get(`${stage.server.http}/kubernetes/management${path}`, { headers })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    assert.equal(response.statusCode, 200)
    return response
  }

  async function leave(team: string): Promise<void> {
    await patch(`${teams}/${team}`, { spec: { users: [] } })
    await refused(mallory.ask('GET', `${secrets(team)}/${names[5]}`), 403)
  }

  /** Reads until the client knows exactly these objects, and then whatever the server sends in addition. */
  async function readUntil(response: IncomingMessage, path: string, expected: readonly string[]) {
    const lines = createInterface({ input: response })[Symbol.asyncIterator]()
    const events: WatchEvent[] = []
    const known = new Set<string>()
    const isExpected = () => known.size === expected.length && expected.every(name => known.has(name))
    // Logged events come before those of changed permissions, and both before the ones of a later write.
    for (const marker of ['zz-first', 'zz-second']) {
      await create(path, marker, { spec: { access: [{ verbs: ['get'], users: ['mallory'] }] } })
      for (let isMarked = false; !isMarked || !isExpected(); ) {
        const { value, done } = await lines.next()
        assert.ok(!done, 'the watch ended')
        const event: WatchEvent = JSON.parse(value)
        const { name } = event.object.metadata
        if (name === marker) isMarked = true
        else if (!name.startsWith('zz-')) {
          events.push(event)
          if (event.type === 'DELETED') known.delete(name)
          else known.add(name)
        }
      }
    }
    response.destroy()
    return events
  }

  const namesOf = (events: readonly WatchEvent[], type: string) =>
    events.filter(event => event.type === type).map(({ object }) => object.metadata.name)

  /** An object that the caller may no longer see. */
  function assertBare({ object }: WatchEvent): void {
    assert.deepEqual(Object.keys(object).sort(), ['apiVersion', 'kind', 'metadata'])
    const fields = ['creationTimestamp', 'name', 'namespace', 'resourceVersion', 'uid']
    assert.deepEqual(Object.keys(object.metadata).sort(), fields)
  }

  test('shows nothing more of its initial state after access has ended', async () => {
    const path = await shareWithTeam('initial')
    const response = await openUnread(`${path}?watch=1`)
    await leave('initial')
    const events = await readUntil(response, path, [])
    const added = namesOf(events, 'ADDED')
    assert.ok(added.length < count / 2, `shows ${added.length} of ${count} secrets`)
    // The sent ones are gone for the client. It does not know the others.
    assert.deepEqual(namesOf(events, 'DELETED').sort(), added.sort())
    for (const event of events) if (event.type === 'DELETED') assertBare(event)
  })

  test('shows nothing more of logged changes after access has ended', async () => {
    const path = await shareWithTeam('logged')
    const { metadata } = await must(mallory.ask('GET', `${path}?limit=1`))
    for (const name of names) await patch(`${path}/${name}`, { spec: { description: 'changed' } })
    const response = await openUnread(`${path}?watch=1&resourceVersion=${metadata.resourceVersion}`)
    await leave('logged')
    const events = await readUntil(response, path, [])
    const modified = namesOf(events, 'MODIFIED')
    assert.ok(modified.length < count / 2, `shows ${modified.length} of ${count} secrets`)
    // A client that resumes knows all of them.
    assert.deepEqual(namesOf(events, 'DELETED').sort(), [...names].sort())
    for (const event of events) if (event.type === 'DELETED') assertBare(event)
  })

  test('shows the whole state again to a caller who lost access and got it back', async () => {
    const path = await shareWithTeam('again')
    const response = await openUnread(`${path}?watch=1`)
    await leave('again')
    await patch(`${teams}/again`, { spec: { users: ['mallory'] } })
    await soon('access is back', async () => (await mallory.ask('GET', `${path}/${names[5]}`)).status === 200)
    await readUntil(response, path, names)
  })

  test('ends if the caller may no longer watch', async () => {
    const path = secrets('whole')
    const rules = [
      { verbs: ['list', 'watch', 'get'], apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'] },
    ]
    await create(`${rbac}/namespaces/whole/roles`, 'reader', { rules })
    const roleRef = { kind: 'Role', name: 'reader' }
    const subjects = [{ kind: 'User', name: 'mallory' }]
    await create(`${rbac}/namespaces/whole/rolebindings`, 'reader', { roleRef, subjects })
    for (const name of names) await create(path, name, { spec: { data } })
    const response = await openUnread(`${path}?watch=1`)
    await must(stage.admin.ask('DELETE', `${rbac}/namespaces/whole/rolebindings/reader`))
    await soon('access has ended', async () => (await mallory.ask('GET', `${path}/${names[5]}`)).status === 403)
    let lines = 0
    for await (const _ of createInterface({ input: response })) lines++
    assert.ok(lines < count / 2, `shows ${lines} of ${count} secrets`)
  })
})

test('a watch identifies an object that its caller may no longer see, and shows nothing else of it', async () => {
  const stage = await openStage()
  try {
    const eve = await stage.invite('eve')
    const path = secrets('handed-over')
    const spec = { data, owner: { user: 'eve' } }
    await must(stage.admin.ask('POST', path, { metadata: { name: 'one', labels: { a: 'b' } }, spec }))
    const events = eve.watch(path)
    const { value: added } = await events.next()
    assert.deepEqual([added.type, added.object.spec.data], ['ADDED', data])
    const { metadata } = await must(
      stage.admin.ask('PATCH', `${path}/one`, { spec: { owner: { user: 'admin' } } }, merge),
    )
    const { value: deleted } = await events.next()
    const { creationTimestamp, uid, resourceVersion } = metadata
    assert.deepEqual(deleted, {
      type: 'DELETED',
      object: {
        apiVersion: 'management.platform.sh/v1',
        kind: 'SharedSecret',
        metadata: { name: 'one', namespace: 'handed-over', creationTimestamp, uid, resourceVersion },
      },
    })
    await events.return?.()
  } finally {
    await stage.close()
  }
})
