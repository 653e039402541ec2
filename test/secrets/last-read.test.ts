// Last reads of secrets, over HTTP on a real server: a column and a subresource, not part of the object (D19, D35).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, ours, refused, secrets, soon } from '../access/people.ts'
import { type Server, startServer } from '../support/server.ts'

const own = `${ours}/namespaces/p-web/projectsecrets`
const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const metadata = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }
const metadataList = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }
const merge = { 'content-type': 'application/merge-patch+json' }

describe('the last read', () => {
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

  test('a secret without its values is not a read: the keys have a placeholder, which no write accepts', async () => {
    await make('masked')
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'values' }
    await must(server.request('PATCH', `${secrets()}/masked`, { body: { metadata: { annotations } }, headers: merge }))
    const object = await must(server.request('GET', `${secrets()}/masked?omitData=true`))
    assert.deepEqual(object.spec.data, { a: '(omitted)' })
    assert.equal(object.spec.owner.user, 'admin')
    assert.equal(object.metadata.annotations?.['kubectl.kubernetes.io/last-applied-configuration'], undefined)
    const { items } = await must(server.request('GET', `${secrets()}?omitData=true`))
    assert.deepEqual(items.find((one: typeof object) => one.metadata.name === 'masked').spec.data, { a: '(omitted)' })
    const body = { metadata: { labels: { a: 'b' } } }
    const patched = await must(server.request('PATCH', `${secrets()}/masked?omitData=true`, { body, headers: merge }))
    assert.deepEqual([patched.metadata.labels, patched.spec.data], [{ a: 'b' }, { a: '(omitted)' }])
    const named = { metadata: { name: 'masked-too' }, spec: { data: { a: 'YQ==' } } }
    const created = await must(server.request('POST', `${secrets()}?omitData=true`, { body: named }))
    assert.deepEqual(created.spec.data, { a: '(omitted)' })
    assert.equal(await lastRead('masked'), 'never')
    await refused(server.request('PUT', `${secrets()}/masked`, { body: patched }), 422, /spec\.data/)
    assert.deepEqual((await must(server.request('GET', `${secrets()}/masked?omitData=false`))).spec.data, { a: 'YQ==' })
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
        assert.deepEqual(await must(server.request('GET', `${path}/${name}`)), made)
      })

  test('is a subresource, and reading it is not a read of the secret', async () => {
    const { metadata: made } = await make('asked')
    const ask = () => must(server.request('GET', `${secrets()}/asked/lastread`))
    const { name, namespace, uid } = made
    const answer = {
      apiVersion: 'management.platform.sh/v1',
      kind: 'SecretLastRead',
      metadata: { name, namespace, uid },
    }
    assert.deepEqual(await ask(), { ...answer, status: {} })
    assert.deepEqual(await ask(), { ...answer, status: {} })
    await must(server.request('GET', `${secrets()}/asked`))
    assert.deepEqual(await ask(), { ...answer, status: { lastRead: await lastRead('asked') } })
    const { resources } = await must(server.request('GET', ours))
    for (const plural of ['sharedsecrets', 'projectsecrets']) {
      const found = resources.find((one: { name: string }) => one.name === `${plural}/lastread`)
      assert.deepEqual([found?.kind, found?.verbs], ['SecretLastRead', ['get']])
    }
  })

  test('needs get on the subresource lastread', async () => {
    await make('guarded')
    const spec = { user: 'nosy' }
    const { spec: nosy } = await must(server.request('POST', keys, { body: { metadata: { name: 'nosy' }, spec } }))
    const ask = () => server.request('GET', `${secrets()}/guarded/lastread`, { key: nosy.key })
    await refused(ask(), 403)
    const access = (subresources: string[]) => ({
      spec: { access: [{ verbs: ['get'], users: ['nosy'], subresources }] },
    })
    const share = (subresources: string[]) =>
      must(server.request('PATCH', `${secrets()}/guarded`, { body: access(subresources), headers: merge }))
    await share([])
    await refused(ask(), 403)
    await share(['lastread'])
    await must(ask())
    await refused(server.request('PUT', `${secrets()}/guarded/lastread`, { body: {} }), 405)
  })

  test('of an object from an older server is ignored in a write, with a warning', async () => {
    const made = await make('exported')
    const body = { ...made, status: { ...made.status, lastRead: '2000-01-01T00:00:00Z' } }
    for (const path of [`${secrets()}/exported`, `${secrets()}/exported/status`]) {
      const { status, body: put, headers } = await server.request('PUT', `${path}?fieldValidation=Strict`, { body })
      assert.equal(status, 200)
      assert.deepEqual(put, made)
      assert.match(String(headers['warning']), /status\.lastRead is deprecated/)
    }
    assert.equal(await lastRead('exported'), 'never')
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
