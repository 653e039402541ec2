// Watch: from where, through which selector, what an event looks like and how it ends. Part of the resources suite.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Status } from '../../../src/api/errors.ts'
import { historySeconds } from '../../support/in-process.ts'
import {
  at,
  create,
  edited,
  events,
  fresh,
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

export function watchSuite(open: OpenHouse): void {
  describe('watch', () => {
    const apiServer = useHouse(open)
    const now = () => String(apiServer().store.revision)
    const update = async (name: string, parts: Parameters<typeof edited>[1], namespace = 'default') =>
      (
        await apiServer().resources.update(
          Widget,
          at(name, namespace),
          edited(await read(apiServer(), name, namespace), parts),
        )
      ).object

    test('starts with existing objects, without a version and for 0, and continues with changes (wire §1.12)', async () => {
      for (const version of [undefined, '0']) {
        const namespace = fresh('ns')
        await create(apiServer(), 'a', {}, namespace)
        await create(apiServer(), 'b', {}, namespace)
        await watching(apiServer(), { namespace, ...(version ? { resourceVersion: version } : {}) }, async watch => {
          assert.deepEqual(spoken(await events(watch, 2)), ['ADDED a', 'ADDED b'])
          await create(apiServer(), 'c', {}, namespace)
          await update('c', { spec: { size: 1 } }, namespace)
          await apiServer().resources.delete(Widget, at('c', namespace))
          assert.deepEqual(spoken(await events(watch, 3)), ['ADDED c', 'MODIFIED c', 'DELETED c'])
        })
      }
    })

    test('from a version shows later changes, and nothing before (wire §1.12)', async () => {
      const name = fresh()
      await create(apiServer(), name)
      const from = now()
      const changed = await update(name, { spec: { size: 1 } })
      await watching(apiServer(), { resourceVersion: from }, async watch => {
        const [event] = await events(watch, 1)
        assert.equal(event?.type, 'MODIFIED')
        assert.deepEqual(plain(event?.document.object), plain(changed))
      })
    })

    test('an event is one line of JSON (wire §1.12)', async () => {
      const from = now()
      const made = await create(apiServer(), fresh(), { spec: { note: 'two\nlines' } })
      await watching(apiServer(), { resourceVersion: from }, async watch => {
        const [event] = await events(watch, 1)
        const text = Buffer.from(event?.line ?? []).toString()
        assert.equal(text.indexOf('\n'), text.length - 1)
        assert.deepEqual(JSON.parse(text), { type: 'ADDED', object: plain(made) })
      })
    })

    test('a deletion shows the last state with the version of the deletion (wire §1.12)', async () => {
      const name = fresh()
      const made = await create(apiServer(), name, { spec: { note: 'last words' } })
      await watching(apiServer(), { resourceVersion: now() }, async watch => {
        await apiServer().resources.delete(Widget, at(name))
        const [event] = await events(watch, 1)
        const object = event?.document.object
        assert.equal(event?.type, 'DELETED')
        assert.equal(version(object), apiServer().store.revision)
        assert.ok(version(object) > version(made))
        assert.equal(object?.spec?.['note'], 'last words')
      })
    })

    test('entering a selector is ADDED, leaving it DELETED with the last visible state and the new version (wire §1.12)', async () => {
      const name = fresh()
      await create(apiServer(), name, { metadata: { labels: { run: name, on: 'yes' } }, spec: { note: 'before' } })
      const labels = (on: string) => ({ metadata: { labels: { run: name, on } } })
      await watching(apiServer(), { resourceVersion: now(), labelSelector: `run=${name},on=yes` }, async watch => {
        const left = await update(name, { ...labels('no'), spec: { note: 'outside' } })
        await update(name, { spec: { note: 'still outside' } })
        const back = await update(name, labels('yes'))
        await update(name, { spec: { note: 'inside' } })
        const [gone, entered, changed] = await events(watch, 3)
        assert.deepEqual(spoken([gone, entered, changed].flatMap(one => one ?? [])), [
          `DELETED ${name}`,
          `ADDED ${name}`,
          `MODIFIED ${name}`,
        ])
        assert.equal(gone?.document.object.spec?.['note'], 'before')
        assert.equal(gone?.document.object.metadata.labels?.['on'], 'yes')
        assert.equal(version(gone?.document.object), version(left))
        assert.equal(version(entered?.document.object), version(back))
      })
    })

    test('metadata.name watches one object, a namespace its objects (wire §1.12)', async () => {
      const [one, other, namespace] = [fresh(), fresh(), fresh('ns')]
      await watching(apiServer(), { resourceVersion: now(), fieldSelector: `metadata.name=${one}` }, async byName => {
        await watching(apiServer(), { resourceVersion: now(), namespace }, async bySpace => {
          await create(apiServer(), other)
          await create(apiServer(), other, {}, namespace)
          await create(apiServer(), one)
          assert.deepEqual(spoken(await events(byName, 1)), [`ADDED ${one}`])
          assert.deepEqual(spoken(await events(bySpace, 1)), [`ADDED ${other}`])
        })
      })
    })

    test('a bookmark has a version to resume from without gaps or duplicates (wire §1.12)', async () => {
      const namespace = fresh('ns')
      await create(apiServer(), 'a', {}, namespace)
      await watching(apiServer(), { namespace, allowWatchBookmarks: true }, async watch => {
        await events(watch, 1)
        const mark = watch.bookmark()
        assert.equal(mark.type, 'BOOKMARK')
        const { kind, apiVersion, metadata } = mark.document.object
        assert.deepEqual([kind, apiVersion], ['Widget', 'management.platform.sh/v1'])
        await create(apiServer(), 'b', {}, namespace)
        await watching(apiServer(), { namespace, resourceVersion: metadata.resourceVersion ?? '' }, async next => {
          assert.deepEqual(spoken(await events(next, 1)), ['ADDED b'])
        })
      })
    })

    test('sendInitialEvents ends the initial state with a marked bookmark (wire §1.12)', async () => {
      const namespace = fresh('ns')
      await create(apiServer(), 'a', {}, namespace)
      const from = now()
      const options = {
        namespace,
        sendInitialEvents: true,
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: true,
      }
      await watching(apiServer(), options, async watch => {
        const [added, mark] = await events(watch, 2)
        assert.deepEqual(spoken([added, mark].flatMap(one => one ?? [])), ['ADDED a', 'BOOKMARK'])
        const object = mark?.document.object
        assert.deepEqual(plain(object?.metadata.annotations), { 'k8s.io/initial-events-end': 'true' })
        assert.ok(version(object) >= Number(from))
        await create(apiServer(), 'b', {}, namespace)
        assert.deepEqual(spoken(await events(watch, 1)), ['ADDED b'])
      })
    })

    test('NotOlderThan a future version waits for it (wire §1.12)', async () => {
      const namespace = fresh('ns')
      const options = {
        namespace,
        sendInitialEvents: true,
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: true,
      }
      const coming = apiServer().resources.watch(Widget, {
        ...options,
        resourceVersion: String(apiServer().store.revision + 1),
      })
      await turn()
      await create(apiServer(), 'a', {}, namespace)
      const watch = await coming
      assert.deepEqual(spoken(await events(watch, 2)), ['ADDED a', 'BOOKMARK'])
      watch.stop()
    })

    test('events are delivered in batches of at most 256, or about 1 MiB, initial state and changes (wire §1.12)', async () => {
      const namespace = fresh('ns')
      const labels = { labels: { run: namespace } }
      const many = Array.from({ length: 300 }, (_, index) => `w${index}`)
      const from = now()
      await Promise.all(many.map(name => create(apiServer(), name, { metadata: labels }, namespace)))
      const large = Array.from({ length: 20 }, (_, index) => `x${index}`)
      for (const name of large)
        await create(apiServer(), name, { metadata: labels, spec: { note: 'n'.repeat(200_000) } }, namespace)
      for (const options of [{ namespace }, { namespace, resourceVersion: from }]) {
        const watch = await apiServer().internalClient.watch(Widget, options)
        const batches: number[] = []
        for (let told = 0; told < 320; told += batches.at(-1) ?? 0) {
          const batch = (await watch.next()) ?? []
          const bytes = batch.reduce((sum, { line }) => sum + line.length, 0)
          assert.ok(batch.length <= 256 && bytes < 1024 * 1024 + 300_000, `${batch.length} events, ${bytes} bytes`)
          // A bookmark does not cover undelivered events.
          const behind = version(watch.bookmark().document.object)
          const isLast = told + batch.length === 320
          assert.equal(isLast ? behind >= Number(now()) : behind < Number(now()), true)
          batches.push(batch.length)
        }
        watch.stop()
        assert.ok(batches.length > 4, batches.join())
      }
    })

    test('sendInitialEvents=false starts with the next change (wire §1.12)', async () => {
      const namespace = fresh('ns')
      await create(apiServer(), 'a', {}, namespace)
      const options = { namespace, sendInitialEvents: false, resourceVersionMatch: 'NotOlderThan' }
      await watching(apiServer(), options, async watch => {
        await create(apiServer(), 'b', {}, namespace)
        assert.deepEqual(spoken(await events(watch, 1)), ['ADDED b'])
      })
    })

    test('sendInitialEvents without NotOlderThan, and a match without it, are 422 (wire §1.12)', async () => {
      for (const options of [
        { sendInitialEvents: true },
        { sendInitialEvents: true, resourceVersionMatch: 'Exact', resourceVersion: '1' },
        { resourceVersionMatch: 'NotOlderThan', resourceVersion: '1' },
      ])
        await refused(apiServer().resources.watch(Widget, options), {
          code: 422,
          reason: 'Invalid',
          message: /^ListOptions\.meta\.k8s\.io "" is invalid: resourceVersionMatch: Forbidden: /,
        })
    })

    test('invalid selectors and versions are 400 (wire §1.11, §1.12)', async () => {
      for (const options of [{ labelSelector: 'a b' }, { fieldSelector: 'spec.x=1' }, { resourceVersion: 'abc' }])
        await refused(apiServer().resources.watch(Widget, options), { code: 400, reason: 'BadRequest' })
    })

    test('no-op writes and dry runs cause no event (wire §1.12)', async () => {
      const name = fresh()
      await create(apiServer(), name, { spec: { size: 1 } })
      await watching(apiServer(), { resourceVersion: now() }, async watch => {
        await update(name, {})
        await apiServer().resources.patch(Widget, at(name), { type: 'merge', body: { spec: { size: 1 } } })
        await apiServer().resources.patch(
          Widget,
          at(name),
          { type: 'merge', body: { spec: { size: 2 } } },
          { dryRun: true },
        )
        await apiServer().resources.delete(Widget, at(name), { dryRun: true })
        const marker = fresh('marker')
        await create(apiServer(), marker)
        assert.deepEqual(spoken(await events(watch, 1)), [`ADDED ${marker}`])
      })
    })

    test('stop ends it: a pending next and every later one return undefined', async () => {
      const watch = await apiServer().resources.watch(Widget, { resourceVersion: now() })
      const waiting = watch.next()
      await turn()
      watch.stop()
      assert.equal(await waiting, undefined)
      assert.equal(await watch.next(), undefined)
      watch.stop()
    })

    test('a future version waits silently (wire §1.12)', async () => {
      const future = String(apiServer().store.revision + 3)
      await watching(apiServer(), { resourceVersion: future }, async watch => {
        await watching(apiServer(), { resourceVersion: now() }, async present => {
          for (let count = 0; count < 3; count++) await create(apiServer(), fresh('early'))
          const name = fresh('late')
          await create(apiServer(), name)
          await events(present, 4)
          assert.deepEqual(spoken(await events(watch, 1)), [`ADDED ${name}`])
        })
      })
    })
  })

  describe('watch: expired version', () => {
    const apiServer = useHouse(open)

    test('is one ERROR event with 410 Expired, and the end (wire §1.12)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      await create(apiServer(), fresh())
      apiServer().clock.forward(historySeconds + 1)
      await create(apiServer(), fresh())
      await create(apiServer(), fresh())
      await watching(apiServer(), { resourceVersion: metadata.resourceVersion ?? '' }, async watch => {
        const [event] = await events(watch, 1)
        const status = event?.document.object as unknown as Status
        assert.equal(event?.type, 'ERROR')
        assert.equal(status.kind, 'Status')
        assert.equal(status.code, 410)
        assert.equal(status.reason, 'Expired')
        assert.match(
          status.message ?? '',
          new RegExp(`^too old resource version: ${metadata.resourceVersion} \\(\\d+\\)$`),
        )
        assert.equal(await watch.next(), undefined)
      })
    })
  })
}
