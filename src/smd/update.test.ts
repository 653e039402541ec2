// Field ownership of updates: managedFields of clients, untracked fields, and the limit of entries.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject, ManagedFieldsEntry, Resource } from '../api/object.ts'
import type { FieldSchema } from './schema.ts'
import { isSameApartFromTimes, trackUpdate } from './update.ts'

const text: FieldSchema = { type: 'string' }
const texts: FieldSchema = { type: 'object', additionalProperties: text }
const schema: FieldSchema = {
  type: 'object',
  properties: {
    apiVersion: text,
    kind: text,
    metadata: {
      type: 'object',
      properties: { name: text, uid: text, resourceVersion: text, labels: texts, generation: { type: 'integer' } },
    },
    spec: { type: 'object', properties: { text, other: text } },
    status: { type: 'object', properties: { phase: text } },
  },
}

type Parts = { labels?: JsonObject; spec?: JsonObject; status?: JsonObject; managedFields?: unknown }
const make = ({ labels = {}, managedFields, ...parts }: Parts): Resource => {
  const metadata = {
    name: 'x',
    uid: 'u',
    resourceVersion: '1',
    generation: 1,
    labels,
    ...(managedFields ? { managedFields } : {}),
  }
  return { apiVersion: 'v1', kind: 'Thing', metadata, ...parts } as unknown as Resource
}
const second = (at: number): string => `2026-01-01T00:00:${String(at).padStart(2, '0')}Z`
function track(
  before: Resource | undefined,
  after: Resource,
  options: { manager?: string; at?: number; subresource?: string } = {},
) {
  const { manager = 'm', at = 0, subresource = '' } = options
  return trackUpdate({
    schema,
    before,
    after,
    manager,
    subresource,
    apiVersion: 'v1',
    now: second(at),
    resetStatus: true,
  })
}
const entry = (manager: string, fieldsV1: unknown, more: object = {}): ManagedFieldsEntry =>
  ({
    manager,
    operation: 'Update',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1,
    time: second(0),
    ...more,
  }) as ManagedFieldsEntry
const brief = (entries: readonly ManagedFieldsEntry[]) =>
  entries.map(({ manager, fieldsV1 }) => [manager, JSON.stringify(fieldsV1)])

describe('managedFields sent with an update', () => {
  const stored = [entry('c', { 'f:spec': { 'f:text': {} } })]
  const live = make({ spec: { text: 'a' }, managedFields: stored })
  const send = (managedFields: unknown, spec: JsonObject = { text: 'a' }, subresource = '') =>
    track(live, make({ spec, managedFields }), { subresource })

  it('replace the stored ones', () => {
    const sent = [entry('k', { 'f:spec': { 'f:text': {} } }, { operation: 'Apply' })]
    assert.deepEqual(brief(send(sent)), [['k', '{"f:spec":{"f:text":{}}}']])
  })
  it('if absent, keep the stored ones', () => assert.deepEqual(send(undefined), stored))
  it('sent back unchanged, too', () => assert.equal(send(structuredClone(stored))[0], stored[0]))
  for (const reset of [[], [{}]]) {
    it(`${JSON.stringify(reset)} clears them, and updates track nothing until an apply`, () => {
      assert.deepEqual(send(reset), [])
      assert.deepEqual(track(make({ spec: { text: 'a' } }), make({ spec: { text: 'b' } })), [])
    })
  }
  const unreadable: unknown[] = [
    [entry('c', {}, { operation: 'Replace' })],
    [entry('c', {}, { apiVersion: '' })],
    [entry('c', {}, { fieldsType: 'FieldsV2' })],
    [entry('c', {}, { fieldsType: undefined })],
    [entry('c', { 'q:x': {}, nonsense: {} })],
    [entry('c', { 'v:{': {} })],
    [entry('c', 'text')],
    [entry('c', {}, { time: 'yesterday' })],
    [entry('c', {}, { time: 5 })],
    [null],
    [7],
    'text',
    { length: 1 },
  ]
  for (const sent of unreadable) {
    it(`${JSON.stringify(sent)} is invalid and counts as absent`, () => assert.deepEqual(send(sent), stored))
  }
  it('are ignored on a subresource', () => assert.deepEqual(send([], { text: 'a' }, 'status'), stored))
  it('are stored in canonical form', () => {
    const sent = [
      entry(
        'k',
        { 'f:spec': { 'f:text': { '.': {} }, 'x:later': {} } },
        { time: '2026-01-01T01:00:00.5+01:00', extra: 1 },
      ),
    ]
    assert.deepEqual(send(sent), [{ ...entry('k', { 'f:spec': { 'f:text': {} } }), time: second(0) }])
  })
  it('lose an owner that owns nothing', () => {
    assert.deepEqual(brief(send([entry('e', {}), ...stored])), brief(stored))
  })
})

describe('an update', () => {
  it('owns labels and spec, never identity or bookkeeping', () => {
    const entries = track(undefined, make({ labels: { a: '1' }, spec: { text: 'x' }, status: { phase: 'p' } }))
    assert.deepEqual(brief(entries), [
      ['m', '{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:text":{}}}'],
    ])
    assert.equal(entries[0]?.time, second(0))
  })
  it('of the status owns the status only', () => {
    const before = make({ spec: { text: 'x' }, managedFields: track(undefined, make({ spec: { text: 'x' } })) })
    const entries = track(before, make({ spec: { text: 'y' }, status: { phase: 'p' } }), {
      manager: 's',
      subresource: 'status',
      at: 1,
    })
    assert.deepEqual(brief(entries), [
      ['m', '{"f:metadata":{"f:labels":{}},"f:spec":{".":{},"f:text":{}}}'],
      ['s', '{"f:status":{".":{},"f:phase":{}}}'],
    ])
    assert.equal(entries[1]?.subresource, 'status')
  })
  it('without a name has the manager "unknown"', () =>
    assert.equal(track(undefined, make({ spec: {} }), { manager: '' })[0]?.manager, 'unknown'))
  it('moves the time of its own entry only, and only when it changes something', () => {
    const first = make({ spec: { text: 'a' }, managedFields: track(undefined, make({ spec: { text: 'a' } })) })
    const next = make({ spec: { text: 'a', other: 'b' } })
    const managedFields = track(first, next, { manager: 'n', at: 7 })
    assert.deepEqual(
      managedFields.map(({ manager, time }) => [manager, time]),
      [
        ['m', second(0)],
        ['n', second(7)],
      ],
    )
    assert.equal(managedFields[0], first.metadata.managedFields?.[0])
    const then = { ...next, metadata: { ...next.metadata, managedFields } }
    assert.deepEqual(track(then, next, { manager: 'n', at: 9 }), managedFields)
  })
  it('of an invalid object keeps the entries', () => {
    const stored = [entry('c', { 'f:spec': {} })]
    assert.equal(track(make({ spec: {}, managedFields: stored }), make({ spec: { bogus: 1 } })), stored)
    assert.deepEqual(track(undefined, make({ spec: { bogus: 1 } })), [])
  })
  it('merges the oldest of more than ten updaters', () => {
    let live = make({
      labels: { k0: '1' },
      managedFields: track(undefined, make({ labels: { k0: '1' } }), { manager: 'm0' }),
    })
    for (let at = 1; at <= 14; at++) {
      const labels = { ...live.metadata.labels, [`k${at}`]: '1' }
      live = make({ labels, managedFields: track(live, make({ labels }), { manager: `m${at}`, at }) })
      assert.ok(live.metadata.managedFields!.length <= 10)
    }
    const [oldest, ...rest] = live.metadata.managedFields!
    assert.deepEqual([oldest?.manager, oldest?.time], ['ancient-changes', second(5)])
    assert.deepEqual(
      Object.keys(
        (oldest as { fieldsV1: { 'f:metadata': { 'f:labels': object } } }).fieldsV1['f:metadata']['f:labels'],
      ),
      ['.', 'f:k0', 'f:k1', 'f:k2', 'f:k3', 'f:k4', 'f:k5'],
    )
    assert.deepEqual(
      rest.map(({ manager }) => manager),
      [6, 7, 8, 9, 10, 11, 12, 13, 14].map(at => `m${at}`),
    )
  })
})

describe('the same apart from times', () => {
  const one = make({ spec: { text: 'a' }, managedFields: [entry('c', { 'f:spec': {} })] })
  it('is no change', () => {
    assert.ok(
      isSameApartFromTimes(
        one,
        make({ spec: { text: 'a' }, managedFields: [entry('c', { 'f:spec': {} }, { time: second(9) })] }),
      ),
    )
  })
  it('another owner or value is a difference', () => {
    assert.ok(!isSameApartFromTimes(one, make({ spec: { text: 'a' }, managedFields: [entry('d', { 'f:spec': {} })] })))
    assert.ok(!isSameApartFromTimes(one, make({ spec: { text: 'b' }, managedFields: one.metadata.managedFields })))
  })
})
