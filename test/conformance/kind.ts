// The contract of a kind as tests: every kind of kinds/index.ts runs this suite over HTTP, without special cases.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { fieldPath, writeAt } from '../../src/api/field-path.ts'
import type { Kind, Verb } from '../../src/api/kind.ts'
import { wholeSchema } from '../../src/api/metadata-schema.ts'
import type { Json, JsonObject, Metadata, Resource } from '../../src/api/object.ts'
import { pathOf, prefix } from '../../src/api/paths.ts'
import type { Resources } from '../../src/api/resources.ts'
import type { Schema } from '../../src/api/schema.ts'
import { connect } from '../../src/client/connect.ts'
import { schemaName } from '../../src/http/openapi-schemas.ts'
import { type ApiServer, buildApiServer, type Front, openFront } from '../support/in-process.ts'

const tableType = 'application/json;as=Table;v=v1;g=meta.k8s.io'

export function kindSuite(kind: Kind, more: readonly Kind[] = []): void {
  describe(`kind ${kind.kind}`, { timeout: 20_000 }, () => {
    let apiServer: ApiServer & { readonly kinds: readonly Kind[] }
    let front: Front
    let resources: Resources
    before(async () => {
      apiServer = await buildApiServer({ kinds: more })
      front = await openFront(apiServer)
      resources = connect({ url: front.url, key: 'any', fetch: (url, init) => fetch(url, init) })
    })
    after(async () => {
      await front.close()
      await apiServer.close()
    })
    const page = async (path: string, accept = 'application/json') => {
      const response = await fetch(`${front.url}${prefix}${path}`, { headers: { accept } })
      assert.equal(response.status, 200, path)
      return (await response.json()) as JsonObject
    }

    test('its sample has its kind', () => {
      assert.equal(kind.sample['apiVersion'], kind.apiVersion)
      assert.equal(kind.sample['kind'], kind.kind)
    })

    test('every field has a description, and the kind has one (they feed kubectl explain)', () => {
      assert.ok(kind.description)
      const bare = fieldsOf(kind).filter(({ schema }) => !schema.description)
      assert.deepEqual(
        bare.map(({ path }) => path),
        [],
      )
    })

    test('hidden, write-only and encrypted paths are fields of the kind', () => {
      const missing = [...kind.hidden, ...kind.writeOnly, ...kind.sealed].filter(
        path => !schemaAt(wholeSchema(kind), fieldPath(path)),
      )
      assert.deepEqual(missing, [])
    })

    test('encrypted and hidden fields are never columns', () => {
      const words = [...kind.hidden, ...kind.sealed].map(path => fieldPath(path).at(-1) ?? '')
      const marked = withMarks(kind.sample, words)
      for (const column of kind.columns) assert.ok(!String(column.value(marked)).includes(mark), column.name)
    })

    if (!kind.served) {
      test('is not served: its path is unknown', async () => {
        const response = await fetch(`${front.url}${prefix}${pathOf(kind, {})}`, { method: 'POST', body: '{}' })
        assert.equal(response.status, 404)
      })
      return
    }

    test('discovery names it with its verbs', async () => {
      const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`
      const { resources: listed } = (await page(root)) as { resources: { name: string }[] } & JsonObject
      const found = listed.find(one => one.name === kind.plural) as unknown as {
        verbs: string[]
        kind: string
        namespaced: boolean
        shortNames?: string[]
      }
      assert.deepEqual([found.kind, found.namespaced], [kind.kind, kind.namespaced])
      assert.deepEqual(found.verbs.toSorted(), [...kind.verbs].sort())
      assert.deepEqual(found.shortNames ?? [], [...kind.shortNames])
      assert.equal(
        listed.some(one => one.name === `${kind.plural}/status`),
        kind.statusSubresource,
      )
    })

    test('OpenAPI v2 and v3 have its schema, without internal fields, with deprecated fields marked', async () => {
      const at = kind.group ? `apis/${kind.group}/${kind.version}` : `api/${kind.version}`
      const three = (await page(`/openapi/v3/${at}`)) as never as OpenApi
      const two = (await page('/openapi/v2')) as never as OpenApi
      for (const document of [three.components?.schemas, two.definitions]) {
        const schema = document?.[schemaName(kind)] as Schema | undefined
        assert.ok(schema)
        for (const field of fieldsOf(kind)) {
          const found = schemaAt(schema, fieldPath(field.path.replaceAll('[]', '')))
          assert.equal(found === undefined, field.internal, `${field.path} in OpenAPI`)
          if (document === three.components?.schemas && found)
            assert.equal(found.deprecated ?? false, field.deprecated, field.path)
          if (found) assert.equal(found.description ?? '', field.schema.description ?? '', field.path)
        }
      }
      const collection = decodeURIComponent(pathOf(kind, { namespace: kind.namespaced ? '{namespace}' : '' }))
      const patch = (three.paths[`${collection}/{name}`] as { patch?: { parameters: { name: string }[] } }).patch
      assert.ok(
        patch?.parameters.some(one => one.name === 'fieldValidation'),
        'PATCH with fieldValidation (wire §0)',
      )
    })

    test('its sample round-trips through every verb', async () => {
      const walk = openWalk(kind, resources)
      for (const verb of steps) if (kind.verbs.includes(verb)) await walk[verb]()
    })

    if (kind.verbs.includes('create'))
      test('an unknown field is dropped with a warning, or rejected if that would lift a restriction (wire §1.8, D25)', async () => {
        const told: string[] = []
        const sample = named(kind, 'unknown-field')
        const body = { ...sample, spec: { ...(sample['spec'] as JsonObject), bogus: 1 } }
        const options = { dryRun: true, warn: (text: string) => told.push(text) }
        if (kind.spec?.['x-closed']) {
          const error = await resources.create(kind, spaceOf(kind), body, options).catch(one => one)
          assert.deepEqual(error.status?.details?.causes, [
            { reason: 'FieldValueForbidden', field: 'spec.bogus', message: 'Forbidden: unknown field "spec.bogus"' },
          ])
          return
        }
        const { object } = await resources.create(kind, spaceOf(kind), body, options)
        const field = kind.spec ? 'spec.bogus' : 'spec'
        assert.deepEqual(told, [`unknown field "${field}"`])
        assert.equal((object.spec as JsonObject | undefined)?.['bogus'], undefined)
      })

    if (kind.verbs.includes('list'))
      test('a Table has a cell for every column (wire §1.6)', async () => {
        if (kind.verbs.includes('create')) await resources.create(kind, spaceOf(kind), named(kind, 'in-a-table'))
        const table = (await page(pathOf(kind, { namespace: spaceOf(kind) }), tableType)) as never as Table
        assert.deepEqual(
          table.columnDefinitions.map(column => column.name),
          ['Name', ...kind.columns.map(column => column.name), 'Age'],
        )
        for (const { cells } of table.rows) {
          assert.equal(cells.length, table.columnDefinitions.length)
          for (const [index, { name, type }] of table.columnDefinitions.entries()) {
            const cell = cells[index]
            const fits = cell === null ? type !== 'string' : typeof cell === (jsTypes[type] ?? 'string')
            assert.ok(fits, `${name}: ${JSON.stringify(cell)} is not of type ${type}`)
          }
        }
        assert.equal(table.rows.length > 0, !alwaysEmpty.includes(kind.kind))
      })
  })
}

/** Kinds for clients that list them, without objects. */
const alwaysEmpty = ['CustomResourceDefinition']

type Table = {
  readonly columnDefinitions: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly { readonly cells: readonly Json[] }[]
}
type OpenApi = {
  readonly components?: { readonly schemas: JsonObject }
  readonly definitions?: JsonObject
  readonly paths: JsonObject
}
const jsTypes: { readonly [type: string]: string } = { integer: 'number', boolean: 'boolean' }

const steps: readonly Verb[] = ['create', 'get', 'list', 'watch', 'update', 'patch', 'delete', 'deletecollection']

const spaceOf = (kind: Kind) => (kind.sample['metadata'] as Metadata | undefined)?.namespace ?? ''
const nameOf = (kind: Kind) => (kind.sample['metadata'] as Metadata | undefined)?.name ?? ''

/** The sample under another name, so that tests do not meet. */
function named(kind: Kind, name: string): JsonObject {
  const metadata = kind.sample['metadata'] as JsonObject | undefined
  return metadata || kind.stored ? { ...kind.sample, metadata: { ...metadata, name } } : kind.sample
}

/** One walk through the verbs, each starting from where the last one left the object. */
function openWalk(kind: Kind, resources: Resources): { readonly [verb in Verb]: () => Promise<void> } {
  const ref = { namespace: spaceOf(kind), name: nameOf(kind) }
  const bare = (object: Resource) => {
    const { managedFields: _, resourceVersion: __, generation: ___, ...metadata } = object.metadata
    return JSON.parse(JSON.stringify({ ...object, metadata })) as unknown
  }
  let current: Resource | undefined
  let begun = '0'
  /** Write-only fields are in the answer to a create alone. */
  const asRead = async () => {
    current = (await resources.get(kind, ref)).object
    return current
  }
  return {
    async create() {
      if (kind.stored) begun = (await resources.list(kind)).resourceVersion
      const { object } = await resources.create(kind, ref.namespace, kind.sample)
      assert.equal(object.kind, kind.kind)
      // Write-only fields of a kind that is not stored are read and not returned.
      const echoed = kind.stored
        ? kind.sample
        : kind.writeOnly.reduce((rest, path) => writeAt(rest, fieldPath(path), undefined), kind.sample)
      assertContains(object as unknown as Json, echoed)
      if (!kind.stored) assert.ok(object.status, 'the answer is in the status')
    },
    async get() {
      const object = await asRead()
      assertContains(object as unknown as Json, kind.sample)
    },
    async list() {
      const { items } = await resources.list(kind, { fieldSelector: `metadata.name=${ref.name}` })
      if (alwaysEmpty.includes(kind.kind)) return assert.deepEqual(items, [])
      assert.equal(items.length, 1)
      current ??= items[0]?.object
      assert.deepEqual(bare(items[0]?.object as Resource), bare(current as Resource))
      assertContains(current as unknown as Json, kind.sample)
    },
    async watch() {
      const watch = await resources.watch(kind, { resourceVersion: begun })
      const [event] = (await watch.next()) ?? []
      watch.stop()
      assert.equal(event?.type, 'ADDED')
      assert.deepEqual(bare(event?.document.object as Resource), bare(current as Resource))
    },
    async update() {
      const same = await resources.update(kind, ref, current as unknown as Json)
      assert.deepEqual(bare(same.object), bare(current as Resource))
      assert.equal(
        same.object.metadata.resourceVersion,
        current?.metadata.resourceVersion,
        'what was read can be sent back',
      )
      const labelled = { ...current, metadata: { ...current?.metadata, labels: { walk: 'update' } } } as unknown as Json
      assert.equal((await resources.update(kind, ref, labelled)).object.metadata.labels?.['walk'], 'update')
    },
    async patch() {
      const merge = { type: 'merge', body: { metadata: { labels: { walk: 'merge' } } } } as const
      assert.equal((await resources.patch(kind, ref, merge)).object.metadata.labels?.['walk'], 'merge')
      const operation = { op: 'replace', path: '/metadata/labels/walk', value: 'json' }
      const json = await resources.patch(kind, ref, { type: 'json', body: [operation] })
      assert.equal(json.object.metadata.labels?.['walk'], 'json')
      const metadata = { ...(kind.sample['metadata'] as JsonObject), annotations: { walk: 'apply' } }
      const apply = { type: 'apply', body: { ...kind.sample, metadata }, force: true } as const
      const applied = await resources.patch(kind, ref, apply, { fieldManager: 'walk' })
      assert.equal(applied.created, undefined)
      assert.equal(applied.object.metadata.annotations?.['walk'], 'apply')
      assertContains((await asRead()) as unknown as Json, kind.sample)
    },
    async delete() {
      const deleted = await resources.delete(kind, ref)
      assert.ok('status' in deleted)
      assert.equal(deleted.status.details?.uid, current?.metadata.uid)
    },
    async deletecollection() {
      await resources.create(kind, ref.namespace, kind.sample)
      const selection = { namespace: ref.namespace, fieldSelector: `metadata.name=${ref.name}` }
      assert.equal((await resources.deleteCollection(kind, selection)).items.length, 1)
      await assert.rejects(resources.get(kind, ref), { code: 404 })
    },
  }
}

/** Everything sent is there; more may be. */
function assertContains(whole: Json, part: Json, path = ''): void {
  if (typeof part !== 'object' || part === null) assert.deepEqual(whole, part, path)
  else
    for (const [key, value] of Object.entries(part))
      assertContains((whole as JsonObject | undefined)?.[key] as Json, value as Json, `${path}.${key}`)
}

type Field = {
  readonly path: string
  readonly schema: Schema
  readonly internal: boolean
  readonly deprecated: boolean
}

/** Every named field of spec and status, as `spec.parts[].name`. */
function fieldsOf(kind: Kind): Field[] {
  const found: Field[] = []
  const walk = (schema: Schema, path: string, internal: boolean) => {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const here = { path: `${path}.${name}`, schema: property }
      const inside = internal || property['x-internal'] === true
      found.push({ ...here, internal: inside, deprecated: property.deprecated === true })
      walk(property, here.path, inside)
    }
    if (schema.items) walk(schema.items, `${path}[]`, internal)
    if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, `${path}[]`, internal)
  }
  if (kind.spec) walk(kind.spec, 'spec', false)
  if (kind.status) walk(kind.status, 'status', false)
  return found
}

function schemaAt(root: Schema, path: readonly string[]): Schema | undefined {
  let schema: Schema | undefined = root
  for (const key of path) {
    while (schema && !schema.properties && (schema.items || typeof schema.additionalProperties === 'object')) {
      const inner: Schema | undefined = schema.items ?? (schema.additionalProperties as Schema)
      // A map of scalars has every key.
      if (!inner.properties && !inner.items) return inner
      schema = inner
    }
    schema = schema?.properties?.[key]
  }
  return schema
}

const mark = 's3cr3t'

/** The sample with a marked value wherever a field of such a name stands or could stand. */
function withMarks(sample: JsonObject, words: readonly string[]): Resource {
  const marks = Object.fromEntries(words.map(word => [word, { [mark]: mark }]))
  const spec = { ...(sample['spec'] as JsonObject), ...marks }
  return { ...sample, spec, metadata: { name: 'x', ...(sample['metadata'] as Metadata) } } as unknown as Resource
}
