// The fast path of field ownership agrees with the full computation.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject, ManagedFieldsEntry, Resource } from '../api/object.ts'
import { writeFieldsV1 } from './fields-v1.ts'
import { capUpdaters, readOwners, withoutManagedFields, writeOwners } from './managers.ts'
import { type FieldSchema, shapeOf } from './schema.ts'
import { fieldsOf } from './typed.ts'
import { identityOf, recordUpdate, trackUpdate } from './update.ts'
import { skeletonOf } from './update-fast-path.ts'

const text: FieldSchema = { type: 'string' }
const item: FieldSchema = { type: 'object', properties: { id: text, note: text } }
const schema: FieldSchema = {
  type: 'object',
  properties: {
    apiVersion: text,
    kind: text,
    metadata: {
      type: 'object',
      properties: {
        name: text,
        generation: { type: 'integer' },
        labels: { type: 'object', additionalProperties: text },
      },
    },
    spec: {
      type: 'object',
      properties: {
        text,
        free: { 'x-kubernetes-preserve-unknown-fields': true },
        whole: { type: 'array', items: text, 'x-kubernetes-list-type': 'atomic' },
        set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        map: {
          type: 'array',
          items: item,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['id'],
        },
      },
    },
    status: { type: 'object', properties: { phase: text } },
  },
}

const word = fc.constantFrom('a', 'b')
const some = { requiredKeys: [] }
const objects = fc
  .record({
    generation: fc.constantFrom(1, 2),
    labels: fc.dictionary(word, word, { maxKeys: 2 }),
    spec: fc.record(
      {
        text: word,
        free: fc.constantFrom(null, {}, [], 'a', 1, { x: 1 }, { x: 2 }, { x: {} }),
        whole: fc.array(word, { maxLength: 2 }),
        set: fc.uniqueArray(word),
        map: fc.uniqueArray(fc.record({ id: word, note: word }, { requiredKeys: ['id'] }), {
          selector: ({ id }) => id,
        }),
      },
      some,
    ),
    phase: word,
  })
  .map(
    ({ generation, labels, spec, phase }) =>
      ({
        apiVersion: 'v1',
        kind: 'Thing',
        metadata: { name: 'x', generation, labels },
        spec,
        status: { phase },
      }) as unknown as Resource,
  )
const steps = fc.array(
  fc.record({
    object: objects,
    manager: word,
    subresource: fc.constantFrom('', '', 'status'),
    at: fc.nat({ max: 5 }),
    isShared: fc.boolean(),
    isAlike: fc.boolean(),
  }),
  { minLength: 1, maxLength: 5 },
)

type Step = { readonly object: Resource; readonly manager: string; readonly subresource: string; readonly at: number }

/** Another manager applied the same fields, so both own them. */
const applied = ({ spec }: Resource): ManagedFieldsEntry => ({
  manager: 'applier',
  operation: 'Apply',
  apiVersion: 'v1',
  fieldsType: 'FieldsV1',
  fieldsV1: writeFieldsV1(fieldsOf(shapeOf(schema), { spec } as JsonObject)),
})

const withEntries = (object: Resource, managedFields: readonly ManagedFieldsEntry[]): Resource => ({
  ...object,
  metadata: { ...object.metadata, managedFields },
})
const requestOf = ({ manager, subresource, at }: Step) => ({
  manager,
  subresource,
  apiVersion: 'v1',
  now: `2026-01-01T00:00:0${at}Z`,
  resetStatus: true,
})

/** The fields of one object with the values of another. */
const alike = ({ spec, ...one }: Resource, other: Resource): Resource => ({
  ...one,
  metadata: { name: 'x', ...(one.metadata.labels ? { labels: one.metadata.labels } : {}), generation: 3 },
  spec: {
    ...spec,
    ...(spec?.text === undefined ? {} : { text: other.status?.phase ?? '' }),
    ...(spec?.whole === undefined ? {} : { whole: ['c'] }),
  },
  status: other.status ?? {},
})

/** Computes every set, without the cache. */
function fullComputation(before: Resource | undefined, step: Step): readonly ManagedFieldsEntry[] {
  const owners = readOwners(before?.metadata.managedFields, { stored: true })
  if (owners.size === 0 && before) return []
  recordUpdate(owners, {
    ...requestOf(step),
    shape: shapeOf(schema),
    before: before ? withoutManagedFields(before) : identityOf(step.object),
    after: withoutManagedFields(step.object),
  })
  capUpdaters(owners)
  return writeOwners(owners)
}

test('any sequence of writes has the owners of the full computation', () => {
  fc.assert(
    fc.property(steps, all => {
      let before: Resource | undefined
      for (const one of all) {
        const object = before && one.isAlike ? alike(before, one.object) : one.object
        const step = { ...one, object, subresource: before ? one.subresource : '' }
        const told = trackUpdate({ ...requestOf(step), schema, before, after: step.object })
        assert.deepEqual(told, fullComputation(before, step))
        const isFirst = told.every(({ operation }) => operation === 'Update')
        before = withEntries(step.object, one.isShared && isFirst ? [applied(step.object), ...told] : told)
      }
    }),
    { numRuns: 3000 },
  )
})

test('changing values of own fields keeps the entry and updates its time', () => {
  const make = (value: string) =>
    ({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'x' }, spec: { text: value } }) as unknown as Resource
  const at = (second: number) => requestOf({ object: make(''), manager: 'a', subresource: '', at: second })
  const first = trackUpdate({ ...at(0), schema, before: undefined, after: make('one') })
  const then = trackUpdate({ ...at(1), schema, before: withEntries(make('one'), first), after: make('two') })
  assert.equal(then[0]?.fieldsV1, first[0]?.fieldsV1, 'it was encoded again')
  assert.equal(then[0]?.time, '2026-01-01T00:00:01Z')
})

test('the cache contains no values of the last object', () => {
  const object = { spec: { text: 'secret', free: { x: 'secret' }, whole: ['secret'], set: ['name'] } } as JsonObject
  const kept = JSON.stringify(skeletonOf(shapeOf(schema), object))
  assert.equal(kept, '{"spec":{"text":"","free":{"x":""},"whole":[],"set":["name"]}}')
})
