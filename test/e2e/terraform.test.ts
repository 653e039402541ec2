// Everything that Terraform's kubernetes_manifest reads and sends: OpenAPI v2, discovery, and server-side apply. The provider itself does not
// run here.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { kinds } from '../../src/kinds/index.ts'
import { must, ours, teams } from '../access/people.ts'
import { type Server, startServer } from '../support/server.ts'

type Schema = {
  readonly type?: string
  readonly $ref?: string
  readonly properties?: { readonly [name: string]: Schema }
  readonly additionalProperties?: Schema
  readonly items?: Schema
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[]
}
type Definitions = { readonly [name: string]: Schema }

let server: Server
before(async () => {
  server = await startServer()
})
after(() => server.stop())

const deepest = 50
const ref = '#/definitions/'

/** The problems of a schema for the type conversion of the provider, which rejects what it does not know. */
function problemsOf(schema: Schema, all: Definitions, at: string, depth = 0): string[] {
  if (depth > deepest) return [`${at} is too deep`]
  const { $ref, type = '', items, properties, additionalProperties } = schema
  const below = (one: Schema, name: string) => problemsOf(one, all, `${at}${name}`, depth + 1)
  if ($ref !== undefined) {
    const target = $ref.startsWith(ref) ? all[$ref.slice(ref.length)] : undefined
    return target ? problemsOf(target, all, at, depth + 1) : [`${at} refers to ${$ref}`]
  }
  if (['', 'string', 'boolean', 'number', 'integer'].includes(type)) return []
  if (type === 'array') return items ? below(items, '[]') : [`${at} has no items`]
  if (type !== 'object') return [`${at} has the type ${type}`]
  if (properties && additionalProperties) return [`${at} has properties and additionalProperties`]
  if (additionalProperties) return below(additionalProperties, '{}')
  return Object.entries(properties ?? {}).flatMap(([name, one]) => below(one, `.${name}`))
}

test('OpenAPI v2 has a model for every kind, with its group, version and kind, and types that the provider knows', async () => {
  const { headers, body } = await server.request('GET', '/openapi/v2')
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(body.swagger, '2.0')
  const all = body.definitions as Definitions
  assert.ok(all['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'])
  for (const { group, version, kind } of kinds.filter(one => one.served && one.verbs.includes('patch'))) {
    const found = Object.entries(all).filter(([, schema]) =>
      schema['x-kubernetes-group-version-kind']?.some(
        one => one.group === group && one.version === version && one.kind === kind,
      ),
    )
    assert.equal(found.length, 1, kind)
    for (const [name, schema] of found) assert.deepEqual(problemsOf(schema, all, name), [])
  }
  assert.deepEqual(problemsOf({ type: 'object', properties: { a: { type: 'array' } } }, {}, 'x'), ['x.a has no items'])
})

test('discovery has CustomResourceDefinition, and every user gets an empty list', async () => {
  const { resources } = await must(server.request('GET', '/apis/apiextensions.k8s.io/v1'))
  assert.deepEqual(resources[0].verbs, ['list'])
  const spec = { user: 'terraform' }
  const { key } = (
    await must(server.request('POST', `${ours}/ownedaccesskeys`, { body: { metadata: { name: 'tf' }, spec } }))
  ).spec
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  for (const one of [key, server.adminKey]) {
    const { kind, items } = await must(server.request('GET', `${path}?limit=500`, { key: one }))
    assert.deepEqual([kind, items], ['CustomResourceDefinitionList', []])
  }
  assert.equal((await server.request('GET', `${path}/one`)).status, 405)
  assert.equal((await server.request('POST', path, { body: { metadata: { name: 'one' } } })).status, 405)
})

test('a plan equals the apply after it, and the plan after that has no difference', async () => {
  const body = {
    apiVersion: 'management.platform.sh/v1',
    kind: 'Team',
    metadata: { name: 'web', labels: { stage: 'test' } },
    spec: { displayName: 'Web', users: ['ada'], clusterRoles: [{ name: 'platform-viewer' }] },
  }
  const headers = { 'Content-Type': 'application/apply-patch+yaml' }
  const apply = async (query = '') => {
    const { metadata, spec } = await must(
      server.request('PATCH', `${teams}/web?fieldManager=Terraform&force=false${query}`, { body, headers }),
    )
    return { labels: metadata.labels, spec }
  }
  const planned = await apply('&dryRun=All')
  assert.equal((await server.request('GET', `${teams}/web`)).status, 404)
  const applied = await apply()
  assert.deepEqual(applied, planned)
  assert.deepEqual(await apply('&dryRun=All'), applied)
  const gone = { body: { propagationPolicy: 'Foreground' } }
  assert.equal((await server.request('DELETE', `${teams}/web`, gone)).status, 200)
})
