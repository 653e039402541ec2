// When secrets were last read, over HTTP on a real server (D19, D35).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, ours, refused, secrets, soon } from '../access/people.ts'
import { type Server, startServer } from '../support/server.ts'

const own = `${ours}/namespaces/p-web/projectsecrets`
const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const metadata = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }
const metadataList = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }
const merge = { 'content-type': 'application/merge-patch+json' }

describe('status.lastRead', () => {
  let server: Server
  before(async () => {
    server = await startServer()
  })
  after(() => server.stop())

  const make = (name: string, path = secrets()) =>
    must(server.request('POST', path, { body: { metadata: { name }, spec: { data: { a: 'YQ==' } } } }))
  /** Without reading it: from the wide table. */
  const lastRead = async (name: string, path = secrets()): Promise<string> => {
    const { columnDefinitions, rows } = await must(server.request('GET', path, { headers: table }))
    const at = columnDefinitions.findIndex((one: { name: string }) => one.name === 'Last-Read')
    return rows.find((row: { cells: string[] }) => row.cells[0] === name).cells[at]
  }
  const now = () => Math.floor(Date.now() / 1000) * 1000

  test('is never for unread secrets: writers, tables, metadata and controllers do not count', async () => {
    await make('unread')
    await must(server.request('PATCH', `${secrets()}/unread`, { body: { spec: { displayName: 'x' } }, headers: merge }))
    for (const headers of [table, metadata]) await must(server.request('GET', `${secrets()}/unread`, { headers }))
    for (const headers of [table, metadataList]) await must(server.request('GET', secrets(), { headers }))
    for await (const { type } of server.watch(`${secrets()}?watch=1&timeoutSeconds=1`, { headers: metadata }))
      if (type === 'ADDED') break
    const body = { metadata: { name: 'copy' }, spec: { sharedSecretRef: { name: 'unread' } } }
    await must(server.request('POST', own, { body }))
    await soon('it is copied', async () => {
      return (await must(server.request('GET', `${own}/copy`))).spec.data?.a === 'YQ=='
    })
    assert.equal(await lastRead('unread'), 'never')
  })

  const reads: { readonly [how: string]: (name: string, path: string) => Promise<unknown> } = {
    get: (name, path) => must(server.request('GET', `${path}/${name}`)),
    'get as YAML': (name, path) =>
      server.request('GET', `${path}/${name}`, { headers: { accept: 'application/yaml' } }),
    list: (_, path) => must(server.request('GET', path)),
    history: (name, path) => must(server.request('GET', `${path}/${name}/history`)),
    'one version': (name, path) => must(server.request('GET', `${path}/${name}/history/1`)),
    'a table with whole objects': (_, path) =>
      must(server.request('GET', `${path}?includeObject=Object`, { headers: table })),
    watch: async (name, path) => {
      for await (const { type, object } of server.watch(`${path}?watch=1&resourceVersion=0`))
        if (type === 'ADDED' && object.metadata.name === name) break
    },
  }
  for (const [how, read] of Object.entries(reads))
    for (const [kind, path] of Object.entries({ 'shared secret': secrets(), 'project secret': own }))
      test(`is set by ${how} of a ${kind}, and changes nothing else about it`, async () => {
        const name = `read-by-${how.toLowerCase().replaceAll(' ', '-')}`
        const made = await make(name, path)
        const began = now()
        await read(name, path)
        const last = Date.parse(await lastRead(name, path))
        assert.ok(last >= began && last <= Date.now(), `${last}`)
        const { metadata: after, status } = await must(server.request('GET', `${path}/${name}`))
        assert.equal(after.resourceVersion, made.metadata.resourceVersion)
        assert.deepEqual(after.managedFields, made.metadata.managedFields)
        assert.equal(typeof status.lastRead, 'string')
      })

  test('is read-only, and a get followed by a put, also of the status, changes nothing', async () => {
    await make('put')
    await must(server.request('GET', `${secrets()}/put`))
    const read = await must(server.request('GET', `${secrets()}/put`))
    assert.ok(read.status.lastRead)
    for (const path of [`${secrets()}/put`, `${secrets()}/put/status`]) {
      const body = { ...read, status: { ...read.status, lastRead: '2000-01-01T00:00:00Z' } }
      const put = await must(server.request('PUT', path, { body }))
      assert.equal(put.metadata.resourceVersion, read.metadata.resourceVersion)
      assert.notEqual(put.status.lastRead, '2000-01-01T00:00:00Z')
    }
  })

  test('survives a restart, and is deleted with the secret', async () => {
    await make('lasting')
    await make('gone')
    await must(server.request('GET', `${secrets()}/lasting`))
    await must(server.request('GET', `${secrets()}/gone`))
    const read = await lastRead('lasting')
    await must(server.request('DELETE', `${secrets()}/gone`))
    await refused(server.request('GET', `${secrets()}/gone`), 404)
    await make('gone')
    assert.equal(await lastRead('gone'), 'never')
    await server.restart()
    assert.equal(await lastRead('lasting'), read)
    assert.equal(await lastRead('gone'), 'never')
  })
})
