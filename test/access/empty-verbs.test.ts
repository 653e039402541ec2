// Access entries without verbs: the API rejects new ones, and the server tolerates stored ones (D26).

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'
import { changeStored } from '../support/stored.ts'
import { must, ours, rbac, refused, secrets, soon, teams } from './people.ts'

const merge = { 'content-type': 'application/merge-patch+json' }
const json = { 'content-type': 'application/json-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }
const why = /spec\.access\[0\]\.verbs: Required value/
const bad = [{ verbs: [], users: ['x'] }]
const good = [{ name: 'read', verbs: ['get'], users: ['x'] }]

let server: Server
before(async () => {
  server = await startServer({ storage: 'sqlite' })
})
after(() => server.stop())
const ask = (method: string, path: string, body?: object, headers = {}) =>
  server.request(method, path, { ...(body ? { body } : {}), headers })

for (const [kind, path] of [
  ['SharedSecret', secrets()],
  ['ProjectSecret', `${ours}/namespaces/p-web/projectsecrets`],
  ['Team', teams],
] as const)
  test(`every write of a ${kind} rejects new entries without verbs`, async () => {
    const one = `${path}/verbs`
    await refused(ask('POST', path, { metadata: { name: 'verbs' }, spec: { access: bad } }), 422, why)
    const made = await must(ask('POST', path, { metadata: { name: 'verbs' }, spec: { access: good } }))
    const { resourceVersion: _, ...metadata } = made.metadata
    await soon('a replace meets no conflict', async () => {
      const { metadata: current } = await must(ask('GET', one))
      const sent = { ...made, metadata: { ...metadata, resourceVersion: current.resourceVersion } }
      const answer = await ask('PUT', one, { ...sent, spec: { ...made.spec, access: bad } })
      if (answer.status === 409) return false
      await refused(Promise.resolve(answer), 422, why)
      return true
    })
    await refused(ask('PATCH', one, { spec: { access: bad } }, merge), 422, why)
    await refused(ask('PATCH', one, [{ op: 'replace', path: '/spec/access/0/verbs', value: [] }], json), 422, why)
    const applied = { apiVersion: made.apiVersion, kind, metadata: { name: 'verbs' }, spec: { access: bad } }
    await refused(ask('PATCH', `${one}?fieldManager=me&force=true`, applied, apply), 422, why)
    await refused(
      ask('PATCH', `${path}/new?fieldManager=me`, { ...applied, metadata: { name: 'new' } }, apply),
      422,
      why,
    )
  })

test('a stored entry without verbs grants nothing, and the object stays usable', async () => {
  const path = `${secrets()}/stored`
  const access = [...good, { name: 'empty', verbs: ['list'], users: ['y'] }]
  await must(ask('POST', secrets(), { metadata: { name: 'stored' }, spec: { access: good } }))
  const isReady = async () => {
    const { status } = await must(ask('GET', path))
    return status.conditions.some(
      (one: { type: string; status: string }) => one.type === 'Ready' && one.status === 'True',
    )
  }
  await soon('it is Ready', isReady)
  await server.restart(async () =>
    changeStored(server.directory, { bucket: 'sharedsecrets', name: 'stored' }, text =>
      text.replace('"access":[', '"access":[{"name":"empty","users":["y"],"verbs":[]},'),
    ),
  )
  await must(ask('PATCH', path, { spec: { description: 'still writable' } }, merge))
  await must(ask('PATCH', path, [{ op: 'add', path: '/spec/access/-', value: { ...access[1], name: 'more' } }], json))
  await soon('it is Ready again', isReady)
  const { items } = await must(ask('GET', `${rbac}/namespaces/default/roles`))
  const names = items.map((one: { metadata: { name: string } }) => one.metadata.name)
  const own = names.filter((name: string) => name.startsWith('access:sharedsecrets:stored:')).sort()
  assert.deepEqual(own, ['access:sharedsecrets:stored:more', 'access:sharedsecrets:stored:read'])
})
