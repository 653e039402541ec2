// Owners: garbage collection, and permission to refer to owners (D11, SPEC §7). Part of the resources suite.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { OwnerReference, Resource } from '../../../src/api/object.ts'
import { SharedSecret } from '../../../src/kinds/shared-secret.ts'
import { Team } from '../../../src/kinds/team.ts'
import {
  at,
  causes,
  create,
  edited,
  fresh,
  isThere,
  json,
  type OpenHouse,
  plain,
  read,
  refused,
  until,
  useHouse,
} from './support.ts'
import { Widget } from './widget.ts'

const owner = (object: Resource, extra: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: object.apiVersion,
  kind: object.kind,
  name: object.metadata.name ?? '',
  uid: object.metadata.uid ?? '',
  ...extra,
})
const blocking = { blockOwnerDeletion: true }

export function ownersSuite(open: OpenHouse): void {
  describe('garbage collection', () => {
    const apiServer = useHouse(open, { collect: true })
    const owned = (owners: OwnerReference[], metadata: object = {}, namespace = '') =>
      create(apiServer(), fresh('owned'), { metadata: { ownerReferences: owners, ...metadata } }, namespace)
    const isHere = (object: Resource) =>
      isThere(apiServer().resources, Widget, at(object.metadata.name ?? '', object.metadata.namespace))
    const gone = (object: Resource) => until(async () => !(await isHere(object)))
    const remove = (object: Resource, propagationPolicy: 'Background' | 'Foreground' | 'Orphan') =>
      apiServer().resources.delete(Widget, at(object.metadata.name ?? ''), { propagationPolicy })
    const again = (object: Resource) => read(apiServer(), object.metadata.name ?? '', object.metadata.namespace)
    /** Unwanted effects would have happened before this one, which is behind them in the queue. */
    const passed = async () => {
      await gone(
        await owned([{ apiVersion: 'management.platform.sh/v1', kind: 'Widget', name: 'never', uid: fresh('uid') }]),
      )
      await apiServer().settled()
    }

    test('background: dependents are deleted after their owner, recursively (D11)', async () => {
      const top = await create(apiServer(), fresh())
      const middle = await owned([owner(top)])
      const bottom = await owned([owner(middle)])
      await remove(top, 'Background')
      await Promise.all([gone(middle), gone(bottom)])
    })

    test('a dependent with another owner stays, without the deleted one (D11)', async () => {
      const [one, other] = [await create(apiServer(), fresh()), await create(apiServer(), fresh())]
      const dependent = await owned([owner(one), owner(other)])
      await remove(one, 'Background')
      await until(async () => (await again(dependent)).metadata.ownerReferences?.length === 1)
      assert.deepEqual(plain((await again(dependent)).metadata.ownerReferences), [owner(other)])
      await remove(other, 'Background')
      await gone(dependent)
    })

    test('a dependent with secrets keeps them when its references change (D28)', async () => {
      const [one, other] = [await create(apiServer(), fresh()), await create(apiServer(), fresh())]
      const data = { password: 'aHVudGVyMg==' }
      const body = json({ metadata: { name: fresh('s'), ownerReferences: [owner(one), owner(other)] }, spec: { data } })
      const { name = '' } = (await apiServer().resources.create(SharedSecret, '', body)).object.metadata
      await remove(one, 'Orphan')
      await remove(other, 'Orphan')
      await Promise.all([gone(one), gone(other)])
      const kept = await read(apiServer(), name, '', SharedSecret)
      assert.equal(kept.metadata.ownerReferences, undefined)
      assert.deepEqual(plain(kept.spec?.['data']), data)
    })

    test('foreground: the owner waits for blocking dependents (D11, SPEC §2.2.1)', async () => {
      const top = await create(apiServer(), fresh())
      const slow = await owned([owner(top, blocking)], { finalizers: ['x.io/wait'] })
      const quick = await owned([owner(top, blocking)])
      await remove(top, 'Foreground')
      await gone(quick)
      await until(async () => (await again(slow)).metadata.deletionTimestamp !== undefined)
      assert.deepEqual((await again(top)).metadata.finalizers, ['foregroundDeletion'])
      await apiServer().resources.patch(Widget, at(slow.metadata.name ?? ''), {
        type: 'merge',
        body: { metadata: { finalizers: null } },
      })
      await gone(top)
    })

    test('foreground: the owner does not wait for other dependents (D11)', async () => {
      const top = await create(apiServer(), fresh())
      const slow = await owned([owner(top)], { finalizers: ['x.io/wait'] })
      await remove(top, 'Foreground')
      await gone(top)
      assert.ok((await again(slow)).metadata.deletionTimestamp)
    })

    test('orphan: dependents stay and lose their owner (D11)', async () => {
      const top = await create(apiServer(), fresh())
      const dependent = await owned([owner(top)])
      await remove(top, 'Orphan')
      await gone(top)
      const kept = await again(dependent)
      assert.deepEqual([kept.metadata.ownerReferences, kept.metadata.deletionTimestamp], [undefined, undefined])
    })

    test('orphan: dependents that are written meanwhile stay as well (D11)', async () => {
      const write = (object: Resource, note: string) =>
        apiServer().resources.patch(Widget, at(object.metadata.name ?? ''), { type: 'merge', body: { spec: { note } } })
      const families = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const top = await create(apiServer(), fresh())
          return { top, dependents: [await owned([owner(top)]), await owned([owner(top)])] }
        }),
      )
      await Promise.all(
        families.flatMap(({ top, dependents }) => [
          ...dependents.map(one => write(one, 'before')),
          remove(top, 'Orphan'),
          ...dependents.map(async one => {
            for (let round = 0; round < 5; round++) await write(one, `round ${round}`)
          }),
        ]),
      )
      await Promise.all(families.map(({ top }) => gone(top)))
      await passed()
      for (const one of families.flatMap(({ dependents }) => dependents)) {
        const { metadata } = await again(one)
        assert.deepEqual([metadata.ownerReferences, metadata.deletionTimestamp], [undefined, undefined])
      }
    })

    test('a cycle is collected, in the background and in the foreground (D11)', async () => {
      for (const policy of ['Background', 'Foreground'] as const) {
        const one = await create(apiServer(), fresh())
        const other = await owned([owner(one, blocking)])
        await apiServer().resources.update(
          Widget,
          at(one.metadata.name ?? ''),
          edited(one, { metadata: { ownerReferences: [owner(other, blocking)] } }),
        )
        await remove(one, policy)
        await Promise.all([gone(one), gone(other)])
      }
    })

    test('an owner that never existed counts as missing: the dependent is collected (D11)', async () => {
      await passed()
    })

    test('an owner in another namespace does not count (wire §1.15)', async () => {
      const elsewhere = await create(apiServer(), fresh(), {}, 'elsewhere')
      await gone(await owned([owner(elsewhere)]))
    })

    test('a cluster-scoped owner is valid in every namespace (wire §1.15)', async () => {
      const team = (await apiServer().resources.create(Team, '', json({ metadata: { name: fresh('team') } }))).object
      const dependent = await owned([owner(team)], {}, 'somewhere')
      await passed()
      assert.ok(await isHere(dependent))
      await apiServer().resources.delete(Team, { namespace: '', name: team.metadata.name ?? '' })
      await gone(dependent)
    })

    test('an owner of an unknown kind is kept and never collected (D11)', async () => {
      const foreign = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'u' }
      const dependent = await owned([foreign])
      await passed()
      assert.deepEqual(plain((await again(dependent)).metadata.ownerReferences), [foreign])
    })
  })

  describe('permission to refer to an owner', () => {
    const apiServer = useHouse(open, {
      authorize: (_, { verb, ...question }) => {
        const name = 'target' in question ? (question.target.name ?? '') : ''
        return { allowed: !(verb === 'delete' && name.startsWith('kept')), reason: '' }
      },
    })

    test('blockOwnerDeletion without permission to delete the owner is 422 (SPEC §7, D11)', async () => {
      const [kept, free] = [await create(apiServer(), fresh('kept')), await create(apiServer(), fresh('free'))]
      const make = (owners: OwnerReference[]) => create(apiServer(), fresh(), { metadata: { ownerReferences: owners } })
      const status = await refused(make([owner(free, blocking), owner(kept, blocking)]), {
        code: 422,
        reason: 'Invalid',
      })
      assert.deepEqual(causes(status), ['metadata.ownerReferences[1].blockOwnerDeletion FieldValueForbidden'])
      await make([owner(free, blocking), owner(kept)])
    })

    test('the permission is checked when the reference is set or becomes blocking, not while it stays (wire §1.10)', async () => {
      const kept = await create(apiServer(), fresh('kept'))
      const made = await create(apiServer(), fresh(), { metadata: { ownerReferences: [owner(kept)] } })
      const send = (parts: Parameters<typeof edited>[1]) =>
        apiServer().resources.update(Widget, at(made.metadata.name ?? ''), edited(made, parts))
      await refused(send({ metadata: { ownerReferences: [owner(kept, blocking)] } }), { code: 422 })
      await send({ spec: { size: 1 } })
    })

    test('blockOwnerDeletion on an unknown kind is 422 (D11)', async () => {
      const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'u', ...blocking }
      const status = await refused(create(apiServer(), fresh(), { metadata: { ownerReferences: [reference] } }), {
        code: 422,
      })
      assert.deepEqual(causes(status), ['metadata.ownerReferences[0].blockOwnerDeletion FieldValueForbidden'])
    })

    test('changing the ownerReferences of an object requires permission to delete it: 403 (D11)', async () => {
      const free = await create(apiServer(), fresh('free'))
      const made = await create(apiServer(), fresh('kept'), { metadata: { ownerReferences: [owner(free)] } })
      const name = made.metadata.name ?? ''
      const message = new RegExp(`^widgets\\.management\\.platform\\.sh "${name}" is forbidden: `)
      for (const ownerReferences of [[], [owner(free, { controller: true })]])
        await refused(
          apiServer().resources.patch(Widget, at(name), {
            type: 'merge',
            body: json({ metadata: { ownerReferences } }),
          }),
          {
            code: 403,
            reason: 'Forbidden',
            message,
          },
        )
      await apiServer().resources.update(Widget, at(name), edited(made, { metadata: { labels: { a: 'b' } } }))
    })
  })
}
