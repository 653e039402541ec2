// The client library as its users have it: the example of docs/CLIENT.md, broken connections, and when it tries again.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Fetch } from '../../src/client/connect.ts'
import { ApiError, connect } from '../../src/client/library.ts'
import { retrying } from '../../src/client/retry.ts'
import { Team } from '../../src/kinds/team.ts'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { closeAll } from '../support/close-all.ts'
import { type Server, startServer } from '../support/server.ts'

let server: Server
let home: CliHome
before(async () => {
  server = await startServer({ storage: 'memory' })
  home = await openHome()
})
after(() => closeAll(home.close, server.stop))

const root = join(import.meta.dirname, '../..')

test('the example of the documentation runs', async () => {
  const env = {
    PLATFORM_SERVER: server.https,
    PLATFORM_ACCESS_KEY: server.adminKey,
    NODE_EXTRA_CA_CERTS: join(server.directory, 'ca.crt'),
  }
  const command = [process.execPath, '--conditions=platform-plane-source', 'examples/client.ts']
  const { code, stdout, stderr } = await home.by(command, { cwd: root, env })
  assert.equal(code, 0, stderr)
  assert.equal(stdout, "[ 'ada' ]\nlibrary\nADDED library [ 'user' ]\nMODIFIED library [ 'password', 'user' ]\n")
})

test('objects have the types of their kind, and errors come from the server', async () => {
  const teams = connect(server.http, server.adminKey).of(Team)
  const { metadata, spec } = await teams.create({ metadata: { name: 'typed' }, spec: { users: ['ada'] } })
  const users: readonly string[] | undefined = spec?.users
  assert.deepEqual(users, ['ada'])
  const updated = await teams.update({ ...(await teams.get('typed')), spec: { users: ['grace'] } })
  assert.deepEqual(updated.spec?.users, ['grace'])
  await assert.rejects(
    teams.update({ ...updated, metadata }),
    (error: ApiError) => error instanceof ApiError && error.code === 409,
  )
  await teams.delete('typed')
  await assert.rejects(teams.get('typed'), (error: ApiError) => {
    assert.deepEqual([error.code, error.reason, error.details?.name], [404, 'NotFound', 'typed'])
    return true
  })
})

test('an invalid address or key is rejected immediately, and the message does not contain the key', () => {
  for (const url of ['', 'plane.example', 'ftp://plane.example'])
    assert.throws(() => connect(url, server.adminKey), /^TypeError: the server must be a URL, such as https:/)
  assert.throws(() => connect(server.https, ''), /^TypeError: the key is empty/)
  for (const key of [
    `${server.adminKey}@${server.https}#sha256:${'0'.repeat(64)}`,
    `${server.adminKey}@${server.https}`,
  ])
    assert.throws(
      () => connect(server.https, key),
      (error: Error) => /pass URL and KEY separately/.test(error.message) && !error.message.includes(server.adminKey),
    )
})

test('a watch resumes after a broken connection, and lists again if its resourceVersion is expired', async () => {
  let breaks = 0
  const fetch: Fetch = async (url, init) => {
    if (!url.includes('watch=true')) return globalThis.fetch(url, init)
    breaks++
    if (breaks === 1) return new Response('', { status: 200 })
    if (breaks === 2) throw new ApiError(503, 'ServiceUnavailable', 'gone')
    const expired = { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } }
    if (breaks < 5) {
      if (breaks === 4) await teams.create({ metadata: { name: 'meanwhile' } })
      return new Response(`${JSON.stringify(expired)}\n`)
    }
    return globalThis.fetch(url, init)
  }
  const teams = connect(server.http, server.adminKey).of(Team)
  await teams.create({ metadata: { name: 'first' } })
  const seen: string[] = []
  for await (const { type, object } of connect(server.http, server.adminKey, { fetch, retry: { tries: 0 } })
    .of(Team)
    .watch()) {
    seen.push(`${type} ${object.metadata.name}`)
    if (object.metadata.name === 'meanwhile' && type === 'ADDED') await teams.delete('first')
    if (type === 'DELETED') break
  }
  assert.deepEqual(seen, ['ADDED first', 'ADDED meanwhile', 'DELETED first'])
  await teams.delete('meanwhile')
})

test('reads are retried, writes only if the server reports that nothing happened (D51)', async () => {
  const answers = (...list: (Response | Error)[]): { fetch: Fetch; calls: () => number } => {
    let at = 0
    return {
      calls: () => at,
      fetch: async () => {
        const one = list[Math.min(at++, list.length - 1)]
        if (one instanceof Error) throw one
        return one?.clone() as Response
      },
    }
  }
  const busy = new Response('', { status: 503 })
  const later = new Response('', { status: 429, headers: { 'retry-after': '1' } })
  const fine = new Response('{}')
  const tried = async (method: string, ...list: (Response | Error)[]) => {
    const { fetch, calls } = answers(...list)
    const waits: number[] = []
    const options = { random: () => 1, sleep: async (time: number) => void waits.push(time) }
    const result = await retrying(fetch, options)('http://x', { method }).then(
      ({ status }) => status,
      () => 'failed',
    )
    return [result, calls(), waits]
  }
  assert.deepEqual(await tried('GET', new Error('broken'), busy, fine), [200, 3, [100, 200]])
  assert.deepEqual(await tried('GET', busy), [503, 5, [100, 200, 400, 800]])
  assert.deepEqual(await tried('POST', busy, fine), [503, 1, []])
  assert.deepEqual(await tried('POST', new Error('broken'), fine), ['failed', 1, []])
  assert.deepEqual(await tried('POST', later, fine), [200, 2, [1000]])
  const muchLater = new Response('', { status: 429, headers: { 'retry-after': '287' } })
  for (const method of ['GET', 'POST'])
    assert.deepEqual(await tried(method, muchLater, fine), [429, 1, []], 'coming sooner is in vain, and said at once')
})
