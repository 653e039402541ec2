// The result of an apply beyond ownership: times, conflict messages, the annotation of kubectl.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Json, JsonObject, Resource } from '../api/object.ts'
import { type ApplyConflict, applyConfiguration, applyConflictStatus } from './apply.ts'
import type { FieldSchema } from './schema.ts'
import { TypedError } from './typed.ts'
import { trackUpdate } from './update.ts'

const text: FieldSchema = { type: 'string' }
const number: FieldSchema = { type: 'integer' }
const setOf = (items: FieldSchema): FieldSchema => ({ type: 'array', items, 'x-kubernetes-list-type': 'set' })
const mapOf = (additionalProperties: FieldSchema): FieldSchema => ({ type: 'object', additionalProperties })
const listOf = (properties: { [name: string]: FieldSchema }): FieldSchema => ({
  type: 'array',
  items: { type: 'object', properties },
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
})
const schema: FieldSchema = {
  type: 'object',
  properties: {
    apiVersion: text,
    kind: text,
    metadata: { type: 'object', properties: { name: text, labels: mapOf(text), annotations: mapOf(text) } },
    spec: {
      type: 'object',
      properties: {
        text,
        number,
        struct: { type: 'object', properties: { name: text, value: number } },
        whole: { ...mapOf(text), 'x-kubernetes-map-type': 'atomic' },
        set: setOf(text),
        list: listOf({ name: text, value: number }),
        lists: listOf({ name: text, value: setOf(text) }),
        maps: listOf({ name: text, value: mapOf(text) }),
        setsByKey: mapOf(setOf(text)),
        mapsByKey: mapOf(mapOf(text)),
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
  },
}

const wrap = (spec: Json, metadata: JsonObject = {}): Resource =>
  ({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'x', ...metadata }, spec }) as unknown as Resource
const request = { schema, subresource: '', apiVersion: 'v1', now: '2026-01-02T03:04:05Z', resetStatus: false }

const plain = (value: unknown): Json => JSON.parse(JSON.stringify(value ?? null))

describe('an apply', () => {
  const apply = (live: Resource | undefined, manager: string, config: Resource, force = false): Resource =>
    applyConfiguration({ ...request, manager, live, config, force }).object

  it('returns the same object when nothing changes', () => {
    const live = apply(undefined, 'a', wrap({ text: 'x' }))
    assert.equal(apply(live, 'a', wrap({ text: 'x' })), live)
  })

  it('without a change has no time, and comes first', () => {
    const live = apply(apply(undefined, 'a', wrap({ text: 'x' })), 'b', wrap({ text: 'x' }))
    assert.deepEqual(
      live.metadata.managedFields?.map(({ manager, time }) => [manager, time]),
      [
        ['b', undefined],
        ['a', request.now],
      ],
    )
  })

  it('lists conflicts by owner, with subresource and version', () => {
    const status = { ...request, subresource: 'status' }
    const first = applyConfiguration({
      ...status,
      manager: 's',
      live: undefined,
      config: wrap({ number: 1, text: 'x' }),
      force: false,
    }).object
    const second = { ...first, spec: { number: 1, text: 'x', set: ['a'] } }
    const managedFields = trackUpdate({ ...request, manager: 'u', before: first, after: second })
    const live = { ...second, metadata: { ...second.metadata, managedFields } }
    const again = { ...live, spec: { ...live.spec, whole: { a: 'x' } } }
    const entries = trackUpdate({ ...request, manager: 'u', before: live, after: again })
    assert.throws(
      () =>
        apply(
          { ...again, metadata: { ...again.metadata, managedFields: entries } },
          'a',
          wrap({ number: 2, text: 'y', whole: {} }),
        ),
      (error: ApplyConflict) => {
        const { message, causes } = applyConflictStatus(error)
        assert.equal(
          message,
          'Apply failed with 3 conflicts: conflicts with "s" with subresource "status":\n- .spec.number\n- .spec.text\nconflicts with "u" using v1:\n- .spec.whole',
        )
        assert.deepEqual(causes[2], {
          reason: 'FieldManagerConflict',
          message: 'conflict with "u" using v1',
          field: '.spec.whole',
        })
        return true
      },
    )
  })

  it('rejects managedFields and invalid values', () => {
    assert.throws(
      () => apply(undefined, 'a', wrap({}, { managedFields: [] })),
      /^TypedError: metadata.managedFields must be nil$/,
    )
    assert.throws(() => apply(undefined, 'a', wrap({ text: 1 })), TypedError)
    assert.throws(
      () => apply(wrap({ bogus: 1 }), 'a', wrap({})),
      (error: TypedError) => error.subject === 'live' && error.message === '.spec.bogus: field not declared in schema',
    )
  })

  it('by kubectl conflicts with changes of others since the client-side apply', () => {
    const lastApplied = JSON.stringify(wrap({ text: 'x', number: 1 }))
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': lastApplied }
    const made = wrap({ text: 'x', number: 2 }, { annotations })
    const managedFields = trackUpdate({
      ...request,
      manager: 'kubectl-client-side-apply',
      before: undefined,
      after: made,
    })
    const live = { ...made, metadata: { ...made.metadata, managedFields } }
    assert.throws(
      () => apply(live, 'kubectl', wrap({ text: 'y', number: 3 })),
      (error: ApplyConflict) => error.conflicts.length === 1 && error.conflicts[0]?.path === '.spec.number',
    )
    const next = apply(live, 'kubectl', wrap({ text: 'y' }))
    assert.deepEqual(plain(next.spec), { text: 'y', number: 2 })
    const sorted = '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"x"},"spec":{"text":"y"}}\n'
    assert.equal(Object.values(next.metadata.annotations ?? {})[0], sorted)
  })
})
