// The server remembers parts of requests, such as names. They do not keep the whole request in memory.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { send } from '../support/direct-http.ts'
import { openDirectServer } from '../support/direct-server.ts'
import { keptBy } from '../support/heap.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const megabyte = 1024 * 1024
const requests = 500
/** As long as a field of HTTP/2 may be. */
const padding = 'x'.repeat(60_000)

describe('what is kept of a request', () => {
  let server: Awaited<ReturnType<typeof openDirectServer>>
  before(async () => {
    server = await openDirectServer({ now: Date.now, auditLevel: 'Metadata' })
  })
  after(() => server.close())

  const keptByRequests = (make: (index: number) => Promise<number>, code: number) =>
    keptBy(async () => {
      for (let index = 0; index < requests; index++) assert.equal(await make(index), code)
    })

  test('a path is kept without its query, also for a client without a key', async () => {
    const bytes = await keptByRequests(async index => {
      const url = `${teams}/a-team-with-a-long-name-${index}?pretty=${padding}`
      return (await send(server.handle, { method: 'GET', url, headers: { authorization: 'Bearer none' } })).code
    }, 401)
    assert.ok(bytes < 10 * megabyte, `${bytes} bytes are kept for ${requests} paths`)
  })

  test('an object that a server-side apply creates keeps its name without the rest of the URL', async () => {
    const apply = async (index: number) => {
      const url = `${teams}/an-applied-team-with-a-long-name-${index}?fieldManager=kubectl&pretty=${padding}`
      const headers = { authorization: `Bearer ${server.adminKey}`, 'content-type': 'application/apply-patch+yaml' }
      const body = 'apiVersion: management.platform.sh/v1\nkind: Team\n'
      return (await send(server.handle, { method: 'PATCH', url, headers, body })).code
    }
    assert.equal(await apply(requests), 201)
    const bytes = await keptByRequests(apply, 201)
    assert.ok(bytes < 15 * megabyte, `${bytes} bytes are kept for ${requests} teams`)
  })

  test('an object keeps the name of its field manager without the rest of the header', async () => {
    const create = async (index: number) => {
      const headers = {
        authorization: `Bearer ${server.adminKey}`,
        'content-type': 'application/json',
        'user-agent': `a-manager-with-a-long-name/${padding}`,
      }
      const body = JSON.stringify({ metadata: { name: `managed-${index}` } })
      return (await send(server.handle, { method: 'POST', url: teams, headers, body })).code
    }
    assert.equal(await create(requests), 201)
    const bytes = await keptByRequests(create, 201)
    assert.ok(bytes < 15 * megabyte, `${bytes} bytes are kept for ${requests} teams`)
  })
})
