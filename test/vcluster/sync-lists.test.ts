// How the syncer lists: page by page, and whole where a page got too old.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { expired } from '../../src/api/errors.ts'
import type { Json, Resource } from '../../src/api/object.ts'
import { documentOf, type Resources } from '../../src/api/resources.ts'
import { scopedTo } from '../../src/reconcile/scoped-client.ts'
import { Endpoints } from '../../src/vcluster/sync/kinds.ts'
import { endpoints, openCluster } from '../support/cluster.ts'

const cluster = await openCluster()
after(() => cluster.close())
const { resources } = cluster
const names = Array.from({ length: 1100 }, (_, index) => `app-${String(index).padStart(4, '0')}`)
for (let at = 0; at < names.length; at += 50)
  await Promise.all(
    names.slice(at, at + 50).map(name => resources.create(Endpoints, 'default', endpoints(name) as unknown as Json)),
  )
await resources.create(Endpoints, 'other', endpoints('not-asked-for', {}, 'other') as unknown as Json)

type Asked = { readonly limit?: number; readonly continue?: string }

/** Records its requests, and fails on demand. */
function listing(failsAt?: number): { readonly asked: Asked[]; readonly resources: Resources } {
  const asked: Asked[] = []
  const list: Resources['list'] = async (kind, options = {}) => {
    asked.push(options)
    if (asked.length === failsAt) throw expired('the list is too old')
    return resources.list(kind, options)
  }
  return { asked, resources: { ...resources, list } }
}
const namesOf = (items: Awaited<ReturnType<Resources['list']>>['items']) =>
  items.map(({ object }) => object.metadata.name).filter(name => name?.startsWith('app-'))

test('a long list is read in pages, all of one revision and one namespace', async () => {
  const { asked, resources: told } = listing()
  const { items, resourceVersion } = await scopedTo(told, 'default').list(Endpoints)
  assert.deepEqual(namesOf(items).toSorted(), names)
  assert.equal(items.filter(({ object }) => object.metadata.namespace !== 'default').length, 0)
  assert.deepEqual(
    asked.map(({ limit }) => limit),
    [500, 500, 500],
  )
  const watch = await scopedTo(resources, 'default').watch(Endpoints, { resourceVersion })
  watch.stop()
})

test('a list whose next page is expired is read again, without pages', async () => {
  const { asked, resources: told } = listing(2)
  const { items } = await scopedTo(told, 'default').list(Endpoints)
  assert.deepEqual(namesOf(items).toSorted(), names)
  assert.deepEqual(
    asked.map(({ limit, continue: next }) => [limit, next !== undefined]),
    [
      [500, false],
      [500, true],
      [undefined, false],
    ],
  )
})

test('an error of the first page is reported, without a retry', async () => {
  const { asked, resources: told } = listing(1)
  await assert.rejects(scopedTo(told, 'default').list(Endpoints), /too old/)
  assert.equal(asked.length, 1)
})

test('items of a list have the requested kind, because Kubernetes omits it in lists', async () => {
  const list: Resources['list'] = async (kind, options) => {
    const { items, ...rest } = await resources.list(kind, options)
    const bare = items.map(({ object: { apiVersion: _, kind: __, ...object } }) => documentOf(object as Resource))
    return { ...rest, items: bare }
  }
  for (const failsAt of [undefined, 2]) {
    const { resources: told } = listing(failsAt)
    const { items } = await scopedTo(
      { ...told, list: (...args) => told.list(...args).then(() => list(...args)) },
      '',
    ).list(Endpoints)
    assert.deepEqual([...new Set(items.map(({ object }) => `${object.apiVersion} ${object.kind}`))], ['v1 Endpoints'])
  }
})
