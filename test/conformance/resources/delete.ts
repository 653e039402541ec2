// Delete: preconditions, finalizers, grace and collections. Part of the resources suite.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { timestamp } from '../../../src/api/object.ts'
import type { DeleteOptions } from '../../../src/api/resources.ts'
import {
  at,
  create,
  edited,
  events,
  fresh,
  isThere,
  type OpenHouse,
  plain,
  read,
  refused,
  spoken,
  useHouse,
  version,
  watching,
} from './support.ts'
import { Widget } from './widget.ts'

export function deleteSuite(open: OpenHouse): void {
  describe('delete', () => {
    const apiServer = useHouse(open)
    const remove = (name: string, options: DeleteOptions = {}) =>
      apiServer().resources.delete(Widget, at(name), options)
    /** Deletes what stays, and answers how it is then. */
    const mark = async (name: string, options: DeleteOptions = {}) => {
      const deleted = await remove(name, options)
      assert.ok('document' in deleted, 'the object stays')
      return deleted.document.object
    }
    const isGone = async (name: string) => !(await isThere(apiServer().resources, Widget, at(name)))
    const in_ = (seconds: number) => timestamp(apiServer().clock.now() + seconds * 1000)

    test('deletes immediately and returns a Status with the uid (D10, wire §1.1)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      const deleted = await remove(metadata.name ?? '')
      assert.ok('status' in deleted)
      assert.deepEqual(plain(deleted.status), {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Success',
        details: { name: metadata.name, group: 'management.platform.sh', kind: 'widgets', uid: metadata.uid },
      })
      assert.ok(await isGone(metadata.name ?? ''))
      await refused(remove(metadata.name ?? ''), { code: 404, reason: 'NotFound' })
    })

    test('with finalizers returns the object with deletionTimestamp and a new generation; a second delete changes nothing (D10, wire §1.15)', async () => {
      const made = await create(apiServer(), fresh(), { metadata: { finalizers: ['x.io/a'] } })
      const going = await mark(made.metadata.name ?? '')
      const { deletionTimestamp, deletionGracePeriodSeconds, generation } = going.metadata
      assert.deepEqual([deletionTimestamp, deletionGracePeriodSeconds, generation], [in_(0), 0, 2])
      apiServer().clock.forward(2)
      assert.deepEqual(plain(await mark(made.metadata.name ?? '')), plain(going))
    })

    test('removing the last finalizer deletes the object in the same write (SPEC §3, wire §1.15)', async () => {
      const made = await create(apiServer(), fresh(), { metadata: { finalizers: ['x.io/a', 'x.io/b'] } })
      const name = made.metadata.name ?? ''
      await mark(name)
      await watching(apiServer(), { resourceVersion: String(apiServer().store.revision) }, async watch => {
        const body = (finalizers: string[] | null) => ({ type: 'merge', body: { metadata: { finalizers } } }) as const
        await apiServer().resources.patch(Widget, at(name), body(['x.io/b']))
        assert.equal(await isGone(name), false)
        const last = await apiServer().resources.patch(Widget, at(name), body(null))
        assert.equal(last.object.metadata.name, name)
        assert.ok(await isGone(name))
        assert.deepEqual(spoken(await events(watch, 2)), [`MODIFIED ${name}`, `DELETED ${name}`])
      })
    })

    test('a grace period keeps the object until then (D10)', async () => {
      const name = fresh()
      await create(apiServer(), name)
      const going = await mark(name, { gracePeriodSeconds: 30 })
      assert.equal(going.metadata.deletionTimestamp, in_(30))
      assert.equal(going.metadata.deletionGracePeriodSeconds, 30)
      const { object } = await apiServer().resources.update(Widget, at(name), edited(going, { spec: { size: 1 } }))
      assert.equal(object.metadata.deletionTimestamp, going.metadata.deletionTimestamp)
      apiServer().clock.forward(31)
      await apiServer().resources.update(Widget, at(name), edited(object, { spec: { size: 2 } }))
      assert.ok(await isGone(name))
    })

    test('a grace period above 2^31-1 seconds is 422 on DeleteOptions; the maximum works like any other (D10)', async () => {
      const name = fresh()
      await create(apiServer(), name)
      for (const gracePeriodSeconds of [2 ** 31, 9_000_000_000_000])
        for (const dryRun of [true, false])
          await refused(remove(name, { gracePeriodSeconds, dryRun }), {
            code: 422,
            reason: 'Invalid',
            message: `DeleteOptions.meta.k8s.io "" is invalid: gracePeriodSeconds: Invalid value: ${gracePeriodSeconds}: must be less than or equal to 2147483647`,
          })
      const { metadata } = await mark(name, { gracePeriodSeconds: 2 ** 31 - 1 })
      assert.equal(metadata.deletionTimestamp, in_(2 ** 31 - 1))
      await remove(name, { gracePeriodSeconds: 0 })
    })

    test('a second delete may only shorten the grace period; 0 ends it (SPEC §2.2, D10)', async () => {
      const name = fresh()
      await create(apiServer(), name)
      await mark(name, { gracePeriodSeconds: 30 })
      const longer = await mark(name, { gracePeriodSeconds: 60 })
      assert.equal(longer.metadata.deletionTimestamp, in_(30))
      const plainly = await mark(name)
      assert.equal(plainly.metadata.deletionTimestamp, in_(30))
      const shorter = await mark(name, { gracePeriodSeconds: 10 })
      assert.deepEqual([shorter.metadata.deletionTimestamp, shorter.metadata.deletionGracePeriodSeconds], [in_(10), 10])
      assert.ok('status' in (await remove(name, { gracePeriodSeconds: 0 })))
      assert.ok(await isGone(name))
    })

    test('a delete after its time deletes it, whatever its options (SPEC §3)', async () => {
      for (const options of [{}, { gracePeriodSeconds: 0 }, { gracePeriodSeconds: 5 }]) {
        const name = fresh()
        await create(apiServer(), name)
        await mark(name, { gracePeriodSeconds: 10 })
        apiServer().clock.forward(10)
        assert.ok('status' in (await remove(name, options)))
        assert.ok(await isGone(name))
      }
    })

    test('is deleted at the later of its time and the last finalizer (D10)', async () => {
      const name = fresh()
      await create(apiServer(), name, { metadata: { finalizers: ['x.io/a'] } })
      await mark(name, { gracePeriodSeconds: 30 })
      const { object } = await apiServer().resources.patch(Widget, at(name), {
        type: 'merge',
        body: { metadata: { finalizers: null } },
      })
      assert.equal(object.metadata.deletionTimestamp, in_(30))
      assert.equal(await isGone(name), false)
      const other = fresh()
      await create(apiServer(), other, { metadata: { finalizers: ['x.io/a'] } })
      await mark(other, { gracePeriodSeconds: 30 })
      apiServer().clock.forward(31)
      assert.equal(await isGone(other), false)
      await apiServer().resources.patch(Widget, at(other), { type: 'merge', body: { metadata: { finalizers: null } } })
      assert.ok(await isGone(other))
    })

    test('failed preconditions are 409 with the Kind in the message (wire §1.15)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      const name = metadata.name ?? ''
      await refused(remove(name, { preconditions: { uid: 'x' } }), {
        code: 409,
        reason: 'Conflict',
        message: `Operation cannot be fulfilled on Widget.management.platform.sh "${name}": the UID in the precondition (x) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
      })
      await refused(remove(name, { preconditions: { resourceVersion: '1' } }), {
        code: 409,
        reason: 'Conflict',
        message: `Operation cannot be fulfilled on Widget.management.platform.sh "${name}": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
      })
      const { uid = '', resourceVersion = '' } = metadata
      assert.ok('status' in (await remove(name, { preconditions: { uid, resourceVersion } })))
    })

    test('Foreground and Orphan set a finalizer; another policy replaces it (wire §1.15)', async () => {
      const name = fresh()
      await create(apiServer(), name)
      assert.deepEqual((await mark(name, { propagationPolicy: 'Foreground' })).metadata.finalizers, [
        'foregroundDeletion',
      ])
      assert.deepEqual((await mark(name, { propagationPolicy: 'Orphan' })).metadata.finalizers, ['orphan'])
      assert.ok('status' in (await remove(name, { propagationPolicy: 'Background' })))
      assert.ok(await isGone(name))
    })

    test('dryRun deletes nothing (wire §1.15)', async () => {
      const made = await create(apiServer(), fresh())
      const name = made.metadata.name ?? ''
      const before = apiServer().store.revision
      assert.ok('status' in (await remove(name, { dryRun: true })))
      const going = await mark(name, { dryRun: true, propagationPolicy: 'Foreground' })
      assert.equal(going.metadata.deletionTimestamp, in_(0))
      assert.equal(apiServer().store.revision, before)
      assert.deepEqual(plain(await read(apiServer(), name)), plain(made))
    })
  })

  describe('deletecollection', () => {
    const apiServer = useHouse(open)
    const names = async (namespace: string) =>
      (await apiServer().resources.list(Widget, { namespace })).items.map(item => item.object.metadata.name)
    const fill = async () => {
      const namespace = fresh('ns')
      await create(apiServer(), 'a', { metadata: { labels: { x: '1' } } }, namespace)
      await create(apiServer(), 'b', { metadata: { labels: { x: '1' }, finalizers: ['x.io/a'] } }, namespace)
      await create(apiServer(), 'c', {}, namespace)
      await create(apiServer(), 'elsewhere', { metadata: { labels: { x: '1' } } }, `${namespace}-2`)
      return namespace
    }

    test('deletes the selected objects of a namespace and returns them (wire §1.15)', async () => {
      const namespace = await fill()
      const { items } = await apiServer().resources.deleteCollection(Widget, { namespace, labelSelector: 'x=1' })
      assert.deepEqual(
        items.map(({ object: { metadata } }) => [metadata.name, metadata.deletionTimestamp]),
        [
          ['a', undefined],
          ['b', undefined],
        ],
      )
      assert.deepEqual(await names(namespace), ['b', 'c'])
      assert.ok((await read(apiServer(), 'b', namespace)).metadata.deletionTimestamp)
      assert.deepEqual(await names(`${namespace}-2`), ['elsewhere'])
    })

    test('dryRun leaves everything (wire §1.15)', async () => {
      const namespace = await fill()
      const { items } = await apiServer().resources.deleteCollection(Widget, { namespace }, { dryRun: true })
      assert.equal(items.length, 3)
      assert.deepEqual(await names(namespace), ['a', 'b', 'c'])
    })

    test('deletes many at once: pending deletes share a commit (wire §1.15)', async () => {
      const namespace = fresh('ns')
      const many = Array.from({ length: 200 }, (_, index) => `w${index}`)
      await Promise.all(many.map(name => create(apiServer(), name, {}, namespace)))
      let most = 0
      let under = 0
      const { store } = apiServer()
      const commit = store.commit
      Object.assign(store, {
        commit: async (ops: Parameters<typeof commit>[0]) => {
          most = Math.max(most, ++under)
          return commit(ops).finally(() => under--)
        },
      })
      const { items } = await apiServer()
        .resources.deleteCollection(Widget, { namespace })
        .finally(() => Object.assign(store, { commit }))
      assert.equal(items.length, 200)
      assert.equal((await apiServer().resources.list(Widget, { namespace })).items.length, 0)
      assert.ok(most > 8 && most <= 32, `${most} at once`)
    })

    test('deletes one page with a limit (wire §1.15)', async () => {
      const namespace = await fill()
      const page = await apiServer().resources.deleteCollection(Widget, { namespace, limit: 1 })
      assert.equal(page.items.length, 1)
      assert.deepEqual(await names(namespace), ['b', 'c'])
    })

    test('accepts field selectors and a policy (wire §1.15)', async () => {
      const namespace = await fill()
      await apiServer().resources.deleteCollection(
        Widget,
        { namespace, fieldSelector: 'metadata.name=c' },
        { propagationPolicy: 'Foreground' },
      )
      assert.deepEqual((await read(apiServer(), 'c', namespace)).metadata.finalizers, ['foregroundDeletion'])
      assert.ok(version(await read(apiServer(), 'c', namespace)) > version(await read(apiServer(), 'b', namespace)))
    })
  })
}
