// Replace, of an object and of its status: preconditions, what may change, and what changes with it. Part of the resources suite.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Resource } from '../../../src/api/object.ts'
import { timestamp } from '../../../src/api/object.ts'
import {
  at,
  causes,
  create,
  edited,
  fresh,
  json,
  managers,
  type OpenHouse,
  plain,
  read,
  refused,
  specOf,
  useHouse,
  version,
  widget,
} from './support.ts'
import { Widget } from './widget.ts'

export function updateSuite(open: OpenHouse): void {
  describe('update', () => {
    const apiServer = useHouse(open)
    const put = (object: Resource, parts: Parameters<typeof edited>[1], options = {}) =>
      apiServer().resources.update(Widget, at(object.metadata.name ?? ''), edited(object, parts), options)

    test('replaces the object with a new version; a change of spec raises the generation (wire §1.13)', async () => {
      const made = await create(apiServer(), fresh(), { spec: { size: 1, note: 'x' } })
      const { metadata, ...rest } = made
      const { object } = await apiServer().resources.update(
        Widget,
        at(metadata.name ?? ''),
        json({ ...rest, metadata, spec: { size: 2 } }),
      )
      assert.deepEqual(specOf(object), { size: 2 })
      assert.ok(version(object) > version(made))
      assert.equal(object.metadata.generation, 2)
      assert.equal(object.metadata.uid, metadata.uid)
    })

    test('labels, annotations and finalizers keep the generation (wire §1.13)', async () => {
      const made = await create(apiServer(), fresh(), { spec: { size: 1 } })
      const { object } = await put(made, {
        metadata: { labels: { a: 'b' }, annotations: { c: 'd' }, finalizers: ['x.io/a'] },
      })
      assert.equal(object.metadata.generation, 1)
      assert.ok(version(object) > version(made))
    })

    test('of a stale version is 409 Conflict (wire §1.1)', async () => {
      const made = await create(apiServer(), fresh())
      const name = made.metadata.name ?? ''
      await put(made, { spec: { size: 1 } })
      await refused(put(made, { spec: { size: 2 } }), {
        code: 409,
        reason: 'Conflict',
        message: `Operation cannot be fulfilled on widgets.management.platform.sh "${name}": the object has been modified; please apply your changes to the latest version and try again`,
        details: { name, group: 'management.platform.sh', kind: 'widgets' },
      })
    })

    test('without a version is 422, with the plural in the message (SPEC §4, wire §1.13)', async () => {
      const made = await create(apiServer(), fresh())
      const name = made.metadata.name ?? ''
      for (const resourceVersion of [undefined, '', '0'])
        await refused(put(made, { metadata: { resourceVersion } }), {
          code: 422,
          reason: 'Invalid',
          message: `widgets.management.platform.sh "${name}" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`,
        })
    })

    test('with another uid is 409; without one the uid is kept (wire §1.13)', async () => {
      const made = await create(apiServer(), fresh())
      const { uid, name } = made.metadata
      await refused(put(made, { metadata: { uid: 'other' } }), {
        code: 409,
        reason: 'Conflict',
        message: `Operation cannot be fulfilled on widgets.management.platform.sh "${name}": Precondition failed: UID in precondition: other, UID in object meta: ${uid}`,
      })
      assert.equal((await put(made, { metadata: { uid: undefined }, spec: { size: 1 } })).object.metadata.uid, uid)
    })

    test('of a missing object is 404, whatever the body (wire §1.13)', async () => {
      const made = await create(apiServer(), fresh())
      await apiServer().resources.delete(Widget, at(made.metadata.name ?? ''))
      await refused(put(made, {}), { code: 404, reason: 'NotFound' })
    })

    test('requires the name of the path: another name or namespace, or no name, is 400 (wire §1.13)', async () => {
      const made = await create(apiServer(), 'u1')
      const send = (metadata: object) => apiServer().resources.update(Widget, at('u1'), edited(made, { metadata }))
      await refused(send({ name: 'u2' }), {
        code: 400,
        message: 'the name of the object (u2) does not match the name on the URL (u1)',
      })
      await refused(send({ name: undefined }), {
        code: 400,
        message: 'the name of the object (u1 based on URL) was undeterminable: name must be provided',
      })
      await refused(send({ namespace: 'other' }), {
        code: 400,
        message: 'the namespace of the provided object does not match the namespace sent on the request',
      })
    })

    test('without a change keeps the version and the times of managedFields (wire §1.13)', async () => {
      const made = await create(apiServer(), fresh(), { spec: { size: 1 } })
      apiServer().clock.forward(5)
      const { object } = await put(made, {}, { fieldManager: 'somebody' })
      assert.deepEqual(plain(object), plain(made))
      assert.deepEqual(plain(await read(apiServer(), made.metadata.name ?? '')), plain(made))
    })

    test('restores fields that only the server sets (wire §1.10)', async () => {
      const made = await create(apiServer(), fresh())
      const { object } = await put(made, {
        metadata: { creationTimestamp: '2001-01-01T00:00:00Z', generation: 77, generateName: 'x-', selfLink: '/x' },
        spec: { size: 1 },
      })
      const { creationTimestamp, generation, generateName } = object.metadata
      assert.equal(creationTimestamp, made.metadata.creationTimestamp)
      assert.equal(generation, 2)
      assert.equal(generateName, undefined)
      assert.equal('selfLink' in object.metadata, false)
    })

    test('cannot set deletionTimestamp or deletionGracePeriodSeconds (wire §1.10)', async () => {
      const made = await create(apiServer(), fresh())
      const metadata = { deletionTimestamp: '2030-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 }
      const status = await refused(put(made, { metadata }), { code: 422, message: /field is immutable/ })
      assert.deepEqual(causes(status), [
        'metadata.deletionTimestamp FieldValueInvalid',
        'metadata.deletionGracePeriodSeconds FieldValueInvalid',
      ])
    })

    test('ignores status, and keeps the stored one (D9)', async () => {
      const made = await create(apiServer(), fresh())
      const ref = at(made.metadata.name ?? '')
      const set = (
        await apiServer().resources.update(Widget, ref, edited(made, { status: { phase: 'Ready' } }), {
          subresource: 'status',
        })
      ).object
      assert.deepEqual(plain(set.status), { phase: 'Ready' })
      assert.deepEqual(plain((await put(set, { status: { phase: 'Mine' }, spec: { size: 1 } })).object.status), {
        phase: 'Ready',
      })
      const { status: _, ...bare } = await read(apiServer(), ref.name)
      const again = await apiServer().resources.update(Widget, ref, json({ ...bare, spec: { size: 3 } }))
      assert.deepEqual(plain(again.object.status), { phase: 'Ready' })
    })

    test('of a terminating object can remove finalizers but add none (SPEC §2.2)', async () => {
      const made = await create(apiServer(), fresh(), { metadata: { finalizers: ['x.io/a', 'x.io/b'] } })
      const ref = at(made.metadata.name ?? '')
      await apiServer().resources.delete(Widget, ref)
      const going = await read(apiServer(), ref.name)
      const status = await refused(put(going, { metadata: { finalizers: ['x.io/a', 'x.io/c'] } }), { code: 422 })
      assert.equal(
        status.details?.causes?.[0]?.message,
        'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.io/c"}',
      )
      const { object } = await put(going, {
        metadata: { finalizers: ['x.io/a'], deletionTimestamp: null },
        spec: { size: 1 },
      })
      assert.equal(object.metadata.deletionTimestamp, going.metadata.deletionTimestamp)
      assert.equal(object.metadata.generation, (going.metadata.generation ?? 0) + 1)
    })

    test('dryRun returns the result with its generation, and stores nothing (wire §3)', async () => {
      const made = await create(apiServer(), fresh(), { spec: { size: 1 } })
      const before = apiServer().store.revision
      const { object } = await put(made, { spec: { size: 2 } }, { dryRun: true })
      assert.deepEqual([specOf(object), object.metadata.generation], [{ size: 2 }, 2])
      assert.deepEqual(plain(await read(apiServer(), made.metadata.name ?? '')), plain(made))
      assert.equal(apiServer().store.revision, before)
    })

    test('records who changed which fields and when (SPEC §2.2.2, wire §1.14)', async () => {
      const made = (
        await apiServer().resources.create(Widget, '', widget(fresh(), { spec: { size: 1, note: 'x' } }), {
          fieldManager: 'a',
        })
      ).object
      apiServer().clock.forward(3)
      const { metadata } = (await put(made, { spec: { size: 2 } }, { fieldManager: 'b' })).object
      assert.deepEqual(managers(metadata), ['a Update', 'b Update'])
      const [a, b] = plain(metadata.managedFields ?? [])
      assert.deepEqual(a?.fieldsV1, { 'f:spec': { '.': {}, 'f:note': {} } })
      assert.deepEqual(b?.fieldsV1, { 'f:spec': { 'f:size': {} } })
      assert.equal(a?.time, made.metadata.creationTimestamp)
      assert.equal(b?.time, timestamp(apiServer().clock.now()))
    })

    test('Strict and Warn treat unknown fields as create does (wire §1.8)', async () => {
      const made = await create(apiServer(), fresh())
      await refused(put(made, { spec: { foo: 1 } }, { fieldValidation: 'Strict' }), {
        code: 400,
        message: /strict decoding error: unknown field "spec\.foo"$/,
      })
      const told: string[] = []
      await put(made, { spec: { foo: 1 } }, { warn: (text: string) => told.push(text) })
      assert.deepEqual(told, ['unknown field "spec.foo"'])
    })
  })

  describe('update of /status', () => {
    const apiServer = useHouse(open)
    const put = (object: Resource, parts: Parameters<typeof edited>[1], options = {}) =>
      apiServer().resources.update(Widget, at(object.metadata.name ?? ''), edited(object, parts), {
        subresource: 'status',
        ...options,
      })

    test('changes only the status, with its own managedFields entry (wire §1.13)', async () => {
      const made = (
        await apiServer().resources.create(Widget, '', widget(fresh(), { spec: { size: 1 } }), { fieldManager: 'a' })
      ).object
      const { object } = await put(
        made,
        {
          metadata: { labels: { a: 'b' }, annotations: { c: 'd' }, finalizers: ['x.io/a'] },
          spec: { size: 9 },
          status: { phase: 'Ready' },
        },
        { fieldManager: 's' },
      )
      assert.deepEqual(plain(object.status), { phase: 'Ready' })
      assert.deepEqual(specOf(object), { size: 1 })
      const { labels, annotations, finalizers, generation } = object.metadata
      assert.deepEqual([labels, annotations, finalizers, generation], [undefined, undefined, undefined, 1])
      assert.deepEqual(managers(object.metadata), ['a Update', 's Update status'])
      assert.deepEqual(plain(object.metadata.managedFields?.[1]?.fieldsV1), { 'f:status': { '.': {}, 'f:phase': {} } })
    })

    test('has the preconditions of any update (wire §1.13)', async () => {
      const made = await create(apiServer(), fresh())
      await put(made, { status: { phase: 'a' } })
      await refused(put(made, { status: { phase: 'b' } }), { code: 409, reason: 'Conflict' })
      await refused(put(made, { metadata: { resourceVersion: undefined } }), { code: 422 })
    })

    test('can be read and merged into (wire §3)', async () => {
      const made = await create(apiServer(), fresh(), { spec: { size: 1 } })
      const ref = at(made.metadata.name ?? '')
      const body = { spec: { size: 5 }, status: { phase: 'Busy' } }
      const patched = await apiServer().resources.patch(Widget, ref, { type: 'merge', body }, { subresource: 'status' })
      assert.deepEqual([specOf(patched.object), plain(patched.object.status)], [{ size: 1 }, { phase: 'Busy' }])
      const got = await apiServer().resources.get(Widget, ref, { subresource: 'status' })
      assert.deepEqual(plain(got.object), plain(patched.object))
    })

    test('is not changed by a merge into the object (D9)', async () => {
      const made = await create(apiServer(), fresh())
      const patched = await apiServer().resources.patch(Widget, at(made.metadata.name ?? ''), {
        type: 'merge',
        body: { status: { phase: 'x' } },
      })
      assert.deepEqual(plain(patched.object), plain(made))
    })
  })
}
