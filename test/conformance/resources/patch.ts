// Patch: JSON Patch, merge patch and apply. Part of the resources suite.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PatchBody } from '../../../src/api/resources.ts'
import {
  at,
  causes,
  create,
  fresh,
  isThere,
  json,
  managers,
  type OpenHouse,
  plain,
  read,
  refused,
  specOf,
  useHouse,
  version,
} from './support.ts'
import { Widget } from './widget.ts'

const operations = (...body: object[]): PatchBody => ({ type: 'json', body: json(body) })
const merge = (body: unknown): PatchBody => ({ type: 'merge', body: json(body) })

export function patchSuite(open: OpenHouse): void {
  describe('JSON Patch', () => {
    const apiServer = useHouse(open)
    const patch = (name: string, body: PatchBody, options = {}) =>
      apiServer().resources.patch(Widget, at(name), body, options)

    test('applies its operations and is recorded as an Update of its manager (D5, SPEC §4)', async () => {
      const { metadata } = await create(apiServer(), fresh(), {
        metadata: { annotations: { a: 'b' } },
        spec: { tags: ['x'] },
      })
      const { object, created } = await patch(
        metadata.name ?? '',
        operations(
          { op: 'add', path: '/metadata/annotations/x.io~1key', value: 'v' },
          { op: 'add', path: '/spec/tags/-', value: 'y' },
          { op: 'test', path: '/spec/tags/1', value: 'y' },
          { op: 'copy', from: '/spec/tags/1', path: '/spec/note' },
        ),
        { fieldManager: 'j' },
      )
      assert.equal(created, undefined)
      assert.deepEqual(plain(object.metadata.annotations), { a: 'b', 'x.io/key': 'v' })
      assert.deepEqual(specOf(object), { note: 'y', tags: ['x', 'y'] })
      assert.ok(managers(object.metadata).includes('j Update'))
    })

    test('a failed operation is 422, and its cause names the operation and the pointer (D5)', async () => {
      const { metadata } = await create(apiServer(), fresh(), { spec: { size: 1 } })
      const cases: [object, string][] = [
        [{ op: 'add', path: '/metadata/annotations/k', value: 'v' }, '/metadata/annotations/k'],
        [{ op: 'test', path: '/spec/size', value: 2 }, '/spec/size'],
        [{ op: 'remove', path: '/spec/none' }, '/spec/none'],
        [{ op: 'replace', path: '/spec/none', value: 1 }, '/spec/none'],
      ]
      for (const [operation, field] of cases) {
        const fine = { op: 'test', path: '/spec/size', value: 1 }
        const status = await refused(patch(metadata.name ?? '', operations(fine, operation)), {
          code: 422,
          reason: 'Invalid',
          message: 'the server rejected our request due to an error in our request',
        })
        assert.deepEqual(
          status.details?.causes?.map(cause => cause.field),
          [field],
        )
        assert.match(status.details?.causes?.[0]?.message ?? '', /^operation 1: /)
      }
    })

    test('rejects negative and padded indexes (D5)', async () => {
      const { metadata } = await create(apiServer(), fresh(), { spec: { tags: ['a', 'b'] } })
      for (const index of ['-1', '00', '01', '2'])
        await refused(
          patch(metadata.name ?? '', operations({ op: 'replace', path: `/spec/tags/${index}`, value: 'z' })),
          {
            code: 422,
          },
        )
    })

    test('a body that is not a list of operations is 400 (wire §1.14)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      await refused(patch(metadata.name ?? '', { type: 'json', body: { op: 'add' } }), {
        code: 400,
        message: /^error decoding patch: /,
      })
    })

    test('an invalid operation is 422 (wire §1.14)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      for (const operation of [
        { op: 'jump', path: '/spec' },
        { path: '/spec', value: 1 },
      ])
        await refused(patch(metadata.name ?? '', operations(operation)), { code: 422, reason: 'Invalid' })
    })

    test('a resourceVersion in the patch is a precondition; a tested one must match (wire §1.14)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      const name = metadata.name ?? ''
      await refused(patch(name, operations({ op: 'add', path: '/metadata/resourceVersion', value: '1' })), {
        code: 409,
        reason: 'Conflict',
      })
      await refused(patch(name, operations({ op: 'test', path: '/metadata/resourceVersion', value: '1' })), {
        code: 422,
      })
      const size = { op: 'add', path: '/spec', value: { size: 1 } }
      const holds = { op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion }
      assert.deepEqual(specOf((await patch(name, operations(holds, size))).object), { size: 1 })
    })

    test('replacing managedFields takes effect (wire §1.14)', async () => {
      const { metadata } = await create(apiServer(), fresh(), { spec: { size: 1 } })
      const value = [{ ...metadata.managedFields?.[0], manager: 'renamed', operation: 'Apply' }]
      const { object } = await patch(
        metadata.name ?? '',
        operations(
          { op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
          { op: 'replace', path: '/metadata/managedFields', value },
        ),
      )
      assert.deepEqual(managers(object.metadata), ['renamed Apply'])
      const forgotten = await patch(
        metadata.name ?? '',
        operations({ op: 'replace', path: '/metadata/managedFields', value: [{}] }),
      )
      assert.equal(forgotten.object.metadata.managedFields, undefined)
    })

    test('cannot change the identity of the object (wire §1.14)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      const set = (path: string, value: string) =>
        patch(metadata.name ?? '', operations({ op: 'replace', path, value }))
      await refused(set('/metadata/name', 'other'), { code: 400 })
      await refused(set('/apiVersion', 'x/v1'), { code: 400 })
      await refused(set('/kind', 'Team'), { code: 422 })
      assert.deepEqual(causes(await refused(set('/metadata/uid', 'other'), { code: 422 })), [
        'metadata.uid FieldValueInvalid',
      ])
    })

    test('Strict reports unknown members of operations and unknown fields as 422 on patch; Warn warns (wire §1.8)', async () => {
      const { metadata } = await create(apiServer(), fresh(), { spec: { size: 1 } })
      const name = metadata.name ?? ''
      const odd = operations({ op: 'add', path: '/spec/size', value: 2, foo: 1 })
      const strict = { fieldValidation: 'Strict' }
      const status = await refused(patch(name, odd, strict), {
        code: 422,
        message: /json patch unknown field "\[0\]\.foo"/,
      })
      assert.equal(status.details?.causes?.[0]?.field, 'patch')
      const making = operations({ op: 'add', path: '/spec/bogus', value: 'v4lue' })
      const made = await refused(patch(name, making, strict), { code: 422, message: /unknown field "spec\.bogus"/ })
      assert.equal(made.message?.includes('v4lue'), false)
      const told: string[] = []
      await patch(name, odd, { warn: (text: string) => told.push(text) })
      await patch(name, making, { warn: (text: string) => told.push(text) })
      assert.deepEqual(told, ['json patch unknown field "[0].foo"', 'unknown field "spec.bogus"'])
    })

    test('of a missing object is 404 (wire §1.14)', async () => {
      await refused(patch('nope', operations()), { code: 404 })
      await refused(patch('nope', merge({})), { code: 404 })
    })
  })

  describe('merge patch', () => {
    const apiServer = useHouse(open)
    const patch = (name: string, body: unknown, options = {}) =>
      apiServer().resources.patch(Widget, at(name), merge(body), options)

    test('sets, makes and deletes (RFC 7396)', async () => {
      const { metadata } = await create(apiServer(), fresh(), { spec: { size: 1, settings: { a: '1', b: '2' } } })
      const { object } = await patch(metadata.name ?? '', {
        metadata: { labels: { x: 'y' } },
        spec: { size: null, settings: { a: null, c: '3' }, tags: ['t'] },
      })
      assert.deepEqual(specOf(object), { settings: { b: '2', c: '3' }, tags: ['t'] })
      assert.deepEqual(plain(object.metadata.labels), { x: 'y' })
      assert.equal(object.metadata.generation, 2)
    })

    test('without a change keeps the version (wire §1.13)', async () => {
      const made = await create(apiServer(), fresh(), { spec: { size: 1 } })
      assert.deepEqual(plain((await patch(made.metadata.name ?? '', { spec: { size: 1 } })).object), plain(made))
    })

    test('is an object (wire §1.14)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      for (const body of [[], 'x', 3])
        await refused(patch(metadata.name ?? '', body), { code: 400, message: /^error decoding patch: / })
    })

    test('can have a resourceVersion as precondition (wire §1.14)', async () => {
      const made = await create(apiServer(), fresh())
      await refused(patch(made.metadata.name ?? '', { metadata: { resourceVersion: '1' } }), {
        code: 409,
        reason: 'Conflict',
      })
      const now = { metadata: { resourceVersion: made.metadata.resourceVersion, labels: { a: 'b' } } }
      assert.ok(version((await patch(made.metadata.name ?? '', now)).object) > version(made))
    })

    test('keys named __proto__ are ordinary (D4)', async () => {
      const { metadata } = await create(apiServer(), fresh(), { spec: { settings: { a: '1' } } })
      const body = JSON.parse('{"spec":{"settings":{"__proto__":"2"}}}')
      const { object } = await patch(metadata.name ?? '', body)
      assert.equal(JSON.stringify(object.spec?.['settings']), '{"__proto__":"2","a":"1"}')
    })

    test('many concurrent patches all take effect: a conflict is retried (wire §1.14)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      const keys = Array.from({ length: 30 }, (_, index) => `k${index}`).toSorted()
      await Promise.all(keys.map(key => patch(metadata.name ?? '', { metadata: { labels: { [key]: 'x' } } })))
      assert.deepEqual(
        Object.keys((await read(apiServer(), metadata.name ?? '')).metadata.labels ?? {}).toSorted(),
        keys,
      )
    })

    test('a delete between many concurrent patches takes effect (wire §1.15)', async () => {
      const { metadata } = await create(apiServer(), fresh(), { metadata: { finalizers: ['x.io/wait'] } })
      const name = metadata.name ?? ''
      const keys = Array.from({ length: 30 }, (_, index) => `k${index}`)
      const labelled = keys.map(key => patch(name, { metadata: { labels: { [key]: 'x' } } }))
      await Promise.all([...labelled, apiServer().resources.delete(Widget, at(name))])
      const after = await read(apiServer(), name)
      assert.ok(after.metadata.deletionTimestamp)
      assert.equal(Object.keys(after.metadata.labels ?? {}).length, keys.length)
    })
  })

  describe('apply', () => {
    const apiServer = useHouse(open)
    const config = (parts: object) => json({ apiVersion: 'management.platform.sh/v1', kind: 'Widget', ...parts })
    const apply = (
      name: string,
      parts: object,
      fieldManager: string | undefined,
      options: { force?: boolean; dryRun?: boolean } = {},
    ) => {
      const { force = false, ...rest } = options
      const body: PatchBody = { type: 'apply', body: config(parts), force }
      return apiServer().resources.patch(Widget, at(name), body, { ...(fieldManager ? { fieldManager } : {}), ...rest })
    }

    test('creates a missing object, and reports it (wire §1.14)', async () => {
      const name = fresh()
      const first = await apply(name, { spec: { size: 1 } }, 'a')
      assert.equal(first.created, true)
      assert.deepEqual(managers(first.object.metadata), ['a Apply'])
      assert.deepEqual([first.object.metadata.name, first.object.metadata.namespace], [name, 'default'])
      const again = await apply(name, { spec: { size: 1 } }, 'a')
      assert.equal(again.created, undefined)
      assert.deepEqual(plain(again.object), plain(first.object))
    })

    test('of several concurrent creates, one creates and the others merge; concurrent deletes make none fail (wire §1.14)', async () => {
      for (let round = 0; round < 5; round++) {
        const name = fresh()
        const answers = await Promise.all(
          ['a', 'b', 'c'].map(one => apply(name, { spec: { settings: { [one]: '1' } } }, one)),
        )
        assert.equal(answers.filter(answer => answer.created).length, 1)
        assert.deepEqual(specOf((await apiServer().resources.get(Widget, at(name))).object), {
          settings: { a: '1', b: '1', c: '1' },
        })
        await Promise.all([
          ...['a', 'b', 'c'].map(one => apply(name, { spec: { settings: { [one]: '2' } } }, one)),
          apiServer().resources.delete(Widget, at(name)),
          ...['a', 'b', 'c'].map(one => apply(name, { spec: { settings: { [one]: '3' } } }, one, { force: true })),
        ])
      }
    })

    test('dryRun creates nothing (wire §1.9)', async () => {
      const name = fresh()
      const answer = await apply(name, { spec: { size: 1 } }, 'a', { dryRun: true })
      assert.equal(answer.object.metadata.resourceVersion, undefined)
      assert.equal(await isThere(apiServer().resources, Widget, at(name)), false)
    })

    test('needs a fieldManager (wire §1.14)', async () => {
      await refused(apply(fresh(), {}, undefined), {
        code: 422,
        message: 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
      })
    })

    test('conflicts with another manager with 409, takes the field by force, shares it with the same value (wire §1.14)', async () => {
      const name = fresh()
      await apply(name, { spec: { size: 1, note: 'a' } }, 'a')
      const status = await refused(apply(name, { spec: { size: 2, note: 'a' } }, 'b'), {
        code: 409,
        reason: 'Conflict',
        message: 'Apply failed with 1 conflict: conflict with "a": .spec.size',
      })
      assert.deepEqual(plain(status.details?.causes), [
        { reason: 'FieldManagerConflict', message: 'conflict with "a"', field: '.spec.size' },
      ])
      const { object } = await apply(name, { spec: { size: 2, note: 'a' } }, 'b', { force: true })
      assert.deepEqual(specOf(object), { size: 2, note: 'a' })
      const [a, b] = plain(object.metadata.managedFields ?? [])
      assert.deepEqual(a?.fieldsV1, { 'f:spec': { 'f:note': {} } })
      assert.deepEqual(b?.fieldsV1, { 'f:spec': { 'f:note': {}, 'f:size': {} } })
    })

    test('removes fields that only its manager owned and that are now absent (wire §1.14)', async () => {
      const name = fresh()
      await apply(name, { spec: { size: 1, note: 'a', tags: ['x', 'y'] } }, 'a')
      const { object } = await apply(name, { spec: { size: 1, tags: ['y'] } }, 'a')
      assert.deepEqual(specOf(object), { size: 1, tags: ['y'] })
    })

    test('unknown fields fail, whatever fieldValidation says (wire §1.8)', async () => {
      await refused(apply('ss1', { spec: { zzz: 1 } }, 'a'), {
        code: 400,
        message:
          'failed to create typed patch object (default/ss1; management.platform.sh/v1, Kind=Widget): .spec.zzz: field not declared in schema',
      })
    })

    test('checks the configuration: kind, name, managedFields, uid (wire §1.14)', async () => {
      const send = (body: unknown) =>
        apiServer().resources.patch(
          Widget,
          at('c1'),
          { type: 'apply', body: json(body), force: false },
          { fieldManager: 'a' },
        )
      await refused(send({ kind: 'Widget', spec: {} }), { code: 400, message: 'invalid object type: /, Kind=Widget' })
      await refused(send(config({ metadata: { name: 'other' } })), {
        code: 400,
        message: 'the name of the object (other) does not match the name on the URL (c1)',
      })
      await refused(send(config({ metadata: { managedFields: [{}] } })), {
        code: 400,
        message: 'metadata.managedFields must be nil',
      })
      await refused(send(config({ metadata: { uid: 'abc' } })), {
        code: 409,
        reason: 'Conflict',
        message: /uid mismatch: the provided object specified uid abc, and no existing object was found/,
      })
    })

    test('validates its result, like any write (D6)', async () => {
      const status = await refused(
        apply(fresh(), { metadata: { labels: { 'bad key': 'x' } }, spec: { size: -1 } }, 'a'),
        { code: 422 },
      )
      assert.deepEqual(causes(status).toSorted(), ['metadata.labels FieldValueInvalid', 'spec.size FieldValueInvalid'])
    })

    test('of the status has a manager of its own (wire §1.14)', async () => {
      const name = fresh()
      await apply(name, { spec: { size: 1 } }, 'a')
      const body: PatchBody = { type: 'apply', body: config({ status: { phase: 'x' } }), force: false }
      const { object } = await apiServer().resources.patch(Widget, at(name), body, {
        fieldManager: 's',
        subresource: 'status',
      })
      assert.deepEqual(managers(object.metadata), ['a Apply', 's Apply status'])
      assert.deepEqual(plain(object.status), { phase: 'x' })
    })
  })
}
