// Searches in the audit logs of all replicas through any of them, and the endpoint that replicas use for it.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { sealsFor } from '../../src/apiserver/encryption.ts'
import { openPeerMessages } from '../../src/apiserver/peer-messages.ts'
import { openSealer } from '../../src/storage/encryption.ts'
import { readKeyRing } from '../../src/storage/key-ring.ts'
import { type Replicas, startReplicas } from '../support/replicas.ts'
import type { Server } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const ours = '/apis/management.platform.sh/v1'
const [events, teams, keys] = [`${ours}/auditevents`, `${ours}/teams`, `${ours}/ownedaccesskeys`]
const merge = { 'content-type': 'application/merge-patch+json' }

// biome-ignore lint/suspicious/noExplicitAny: the events of the log
type Any = any
type Page = { readonly names: string[]; readonly warnings: string; readonly next: string | undefined }

async function search(server: Server, selector: string, more = '', key?: string): Promise<Page> {
  const path = `${events}?fieldSelector=${encodeURIComponent(selector)}${more}`
  const { status, body, headers } = await server.request('GET', path, key ? { key } : {})
  assert.equal(status, 200, JSON.stringify(body))
  const names = body.items.map((one: Any) => one.objectRef.name)
  return { names, warnings: String(headers['warning'] ?? ''), next: body.metadata.continue }
}

/** All pages, each from the next replica. */
async function pages(servers: readonly Server[], selector: string, limit: number, key?: string): Promise<Page[]> {
  const found: Page[] = []
  let next: string | undefined
  do {
    const server = servers[found.length % servers.length] as Server
    const page = await search(server, selector, `&limit=${limit}${next ? `&continue=${next}` : ''}`, key)
    found.push(page)
    next = page.next
  } while (next)
  return found
}

describe('audit search', () => {
  let replicas: Replicas
  let one: Server
  let two: Server
  let three: Server
  const created: string[] = []
  const create = async (server: Server) => {
    const name = `t-${created.length}`
    const { status } = await server.request('POST', teams, { body: { metadata: { name } } })
    assert.equal(status, 201)
    created.unshift(name)
  }
  const selector = 'resource=teams,verb=create'
  const all = () => [one, two, three]
  const isComplete = (server: Server) =>
    eventually('all replicas know each other', async () => {
      const { names, warnings } = await search(server, selector, '&limit=500')
      return warnings === '' && names.length === created.length
    })
  before(async () => {
    replicas = await startReplicas({ replicas: 3 })
    ;[one, two, three] = replicas.servers as [Server, Server, Server]
    for (let round = 0; round < 12; round++) for (const server of all()) await create(server)
    for (const server of all()) await isComplete(server)
  })
  after(() => replicas.close())

  test('shows the events of all replicas in order, at every replica', async () => {
    for (const server of all()) assert.deepEqual((await search(server, selector, '&limit=500')).names, created)
    const [name = ''] = created
    assert.deepEqual((await search(one, `${selector},name=${name}`)).names, [name])
  })

  test('pages continue at other replicas, without gaps or repeats', async () => {
    for (const limit of [1, 5])
      assert.deepEqual(
        (await pages(all(), selector, limit)).flatMap(({ names }) => names),
        created,
      )
  })

  test('pages continue after all replicas were restarted, and are not moved by new events', async () => {
    const earlier = [...created]
    const first = await search(one, selector, '&limit=7')
    for (const server of all()) await server.restart()
    for (const server of all()) await create(server)
    for (const server of all()) await isComplete(server)
    const rest = await search(two, selector, `&limit=500&continue=${first.next}`)
    assert.deepEqual([...first.names, ...rest.names], earlier)
    assert.equal(rest.warnings, '')
  })

  test('other callers see their own events of all replicas, and pages do not confirm a guess', async () => {
    const body = { metadata: { name: 'eve' }, spec: { user: 'eve' } }
    const eve: string = (await one.request('POST', keys, { body })).body.spec.key
    const expected: string[] = []
    for (const name of ['x-1', 'x-2', 'x-3', 'x-4', 'x-5', 'x-6']) {
      const server = all()[expected.length % 3] as Server
      await server.request('GET', `${teams}/${name}`, { key: eve })
      await server.request('PATCH', `${teams}/t-0`, { headers: merge, body: { metadata: { labels: { name } } } })
      expected.unshift(name)
    }
    const shown = async (guess: string) =>
      (await pages(all(), guess, 2, eve)).map(({ names, warnings }) => ({ names, warnings }))
    const right = await shown('resource=teams,name!=nothing')
    assert.deepEqual(
      right.flatMap(({ names }) => names),
      expected,
    )
    assert.deepEqual(await shown('resource=teams,name!=t-0'), right)
    assert.deepEqual(await shown('resource=teams,verb!=patch'), right)
    const lengths = await Promise.all(
      ['resource=teams,name!=nothing', 'resource=teams,name!=t-0'].map(
        async guess => (await search(one, guess, '&limit=1', eve)).next?.length,
      ),
    )
    assert.equal(lengths[0], lengths[1])
    const { next } = await search(one, selector, '&limit=1')
    const stolen = await two.request(
      'GET',
      `${events}?continue=${next}&fieldSelector=${encodeURIComponent(selector)}`,
      {
        key: eve,
      },
    )
    assert.equal(stolen.status, 410)
  })

  test('a replica that is down is named in a warning, and the others are searched', async () => {
    const before = await search(one, selector, '&limit=3')
    await three.die()
    const { names, warnings } = await search(one, selector, '&limit=500')
    assert.ok(names.length > created.length / 2 && names.length < created.length, String(names.length))
    assert.ok(warnings.includes(`the audit log of replica ${three.https} could not be read`), warnings)
    const found = await pages([one, two], selector, 4)
    assert.ok(found.every(page => page.warnings.includes('could not be read')))
    assert.deepEqual(
      found.flatMap(page => page.names),
      names,
    )
    // A search that began before continues, too.
    const rest = await search(two, selector, `&limit=500&continue=${before.next}`)
    assert.ok(rest.names.length > 0 && rest.warnings.includes('could not be read'))
    // When its lease has expired, it is still missed.
    await eventually('it does not run', async () =>
      (await search(one, selector)).warnings.includes('the replica does not run'),
    )
    await three.crash({})
    for (const server of all()) await isComplete(server)
  })
})

describe('the endpoint for other replicas', () => {
  let replicas: Replicas
  let one: Server
  let two: Server
  before(async () => {
    replicas = await startReplicas({ replicas: 2 })
    ;[one, two] = replicas.servers as [Server, Server]
  })
  after(() => replicas.close())

  const path = '/internal/audit-scan'
  const send = async (body: string | Buffer, to = path, base = one.http) => {
    const response = await fetch(base + to, { method: 'POST', body: new Uint8Array(Buffer.from(body)) })
    const text = (await response.text()).replaceAll(to, path)
    return { status: response.status, text }
  }
  const idOf = (server: Server) => readFileSync(join(server.directory, 'replica.id'), 'utf8').trim()
  const messagesOf = (keyring: string) => {
    const sealer = openSealer({ keys: readKeyRing(keyring), random: size => randomBytes(size) })
    return openPeerMessages({ seals: sealsFor(sealer, 'peer'), self: idOf(two), now: Date.now })
  }
  const ring = () => readFileSync(join(one.directory, 'master.key'), 'utf8')
  const scan = { query: { terms: [] }, limit: 5 }

  test('answers a replica, once, with a sealed part of the log', async () => {
    const messages = messagesOf(ring())
    const { id, text } = messages.request(idOf(one), scan)
    const { status, text: answer } = await send(text)
    assert.equal(status, 200)
    assert.doesNotMatch(answer, /matches|stageTimestamp/)
    const { matches } = messages.openResponse(idOf(one), id, answer) as { matches: unknown[] }
    assert.equal(matches.length, 5)
    assert.deepEqual(await send(text), await send(text, '/internal/nothing'))
    assert.deepEqual(await send(text, path, two.http), await send(text, '/internal/nothing', two.http))
  })

  test('answers everything else like any unknown path', async () => {
    const unknown = await send('', '/internal/nothing')
    const foreign = ring().replace(/[A-Za-z0-9+/_-]{40,}=*/, () => randomBytes(32).toString('base64'))
    const { text: stolen } = messagesOf(foreign).request(idOf(one), scan)
    const bodies = [
      '',
      '{}',
      stolen,
      Buffer.alloc(64 * 1024, 'x'),
      Buffer.alloc(200 * 1024, 'x'),
      ...Array.from({ length: 20 }, (_, index) => randomBytes(index * 50)),
    ]
    for (const body of bodies) assert.deepEqual(await send(body), unknown)
    for (const method of ['GET', 'PUT', 'DELETE'])
      assert.equal((await fetch(one.http + path, { method })).status, unknown.status, method)
    const { status } = await one.request('GET', teams)
    assert.equal(status, 200)
  })

  test('counts what it cannot open like unknown keys, and shows the path nowhere', async () => {
    const headers = { authorization: `Bearer ${one.adminKey}` }
    const counted = async () => {
      const text = await (await fetch(`${one.http}/metrics`, { headers })).text()
      assert.doesNotMatch(text, /platform_seal_failures_total\{[^}]*PeerMessage/)
      return Number(/^platform_unknown_keys_total (\d+)$/m.exec(text)?.[1])
    }
    const earlier = await counted()
    await send('x')
    assert.equal(await counted(), earlier + 1)
    for (const page of ['/openapi/v2', '/apis', '/', '/openapi/v3'])
      assert.doesNotMatch((await one.request('GET', page)).text, /internal\/audit/)
  })

  test('survives a message of a replica with wrong content', async () => {
    const messages = messagesOf(ring())
    for (const value of [{}, { query: {} }, { query: { terms: 1 } }, { ...scan, from: { file: 'x', at: -1 } }, []]) {
      const { id, text } = messages.request(idOf(one), value)
      const { status, text: answer } = await send(text)
      assert.equal(status, 200)
      const opened = messages.openResponse(idOf(one), id, answer) as object
      assert.ok('unreadable' in opened || 'expired' in opened, JSON.stringify(opened))
    }
  })
})
