// Cached lists: shared while nothing changes, and never between the server itself and its clients.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { buildApiServer } from '../../test/support/in-process.ts'
import { OwnedAccessKey, Team } from '../kinds/index.ts'

const server = await buildApiServer()
after(() => server.close())
const { internalClient, resources } = server

for (const name of ['a', 'b', 'c', 'd']) await resources.create(Team, '', { metadata: { name } })
await resources.create(OwnedAccessKey, '', { metadata: { name: 'key' }, spec: { user: 'ada' } })

test('informers that list at the same moment share every page after the first, until something changes', async () => {
  const firstPages = await Promise.all([1, 2].map(() => internalClient.list(Team, { limit: 2 })))
  const [next = ''] = firstPages.map(page => page.continue ?? '')
  const secondPage = () => internalClient.list(Team, { limit: 2, continue: next })
  const [one, other] = await Promise.all([secondPage(), secondPage()])
  assert.deepEqual(
    one?.items.map(({ ref }) => ref.name),
    ['c', 'd'],
  )
  assert.equal(one, other)
  await resources.create(Team, '', { metadata: { name: 'e' } })
  assert.notEqual(await secondPage(), one)
  const { items } = await internalClient.list(Team, { limit: 500 })
  assert.equal(items.length, 5)
})

test('a client does not get a cached list of the server, which has hidden fields', async () => {
  const list = async (client: typeof resources) => {
    const { items } = await client.list(OwnedAccessKey, { limit: 500 })
    return items.map(({ object }) => object.status?.['digest'])
  }
  assert.match(String(await list(internalClient)), /^[0-9a-f]{64}$/)
  assert.deepEqual(await list(resources), [undefined])
  assert.match(String(await list(internalClient)), /^[0-9a-f]{64}$/)
})
