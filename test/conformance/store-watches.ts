// The part of the store's contract that is about time: watches, and how far back history reaches. Run by the store suite.

import assert from 'node:assert/strict'
import { describe } from 'node:test'
import type { Entry, Store, StoreEvent } from '../../src/storage/store.ts'
import {
  drain,
  key,
  names,
  type OpenStore,
  put,
  refusedNow,
  remove,
  secrets,
  teams,
  useStore,
  value,
} from './store-samples.ts'

export function watchSuite(engine: string, open: OpenStore): void {
  let clock = 0
  const use = useStore(open, () => clock)

  describe(`${engine}: watches`, () => {
    use('events come in order, with the previous state, and a deletion shows the last state', async store => {
      await store.commit([put('a', 0, 'one')])
      await store.commit([put('a', 2, 'two')])
      await store.commit([remove('a')])
      const events = store.watch(teams, 1).take(9)
      assert.deepEqual(names(events), ['2 created a', '3 updated a', '4 deleted a'])
      assert.deepEqual(
        events.map(event => event.previous?.text.toString()),
        [
          undefined,
          '{"metadata":{"resourceVersion":"2"},"note":"one"}',
          '{"metadata":{"resourceVersion":"3"},"note":"two"}',
        ],
      )
      assert.equal(events[2]?.entry.text.toString(), '{"metadata":{"resourceVersion":"4"},"note":"two"}')
      assert.equal(events[2]?.entry.revision, 4)
    })

    use('a deletion whose revision has more digits than the value still shows whole JSON', async store => {
      await store.commit([put('a', 0, 'ä')])
      for (let i = 0; i < 9; i++) await store.commit([put('b')])
      await store.commit([remove('a')])
      const event = store.watch(teams, 11).take(9)[0]
      assert.equal(event?.entry.text.toString(), '{"metadata":{"resourceVersion":"12"},"note":"ä"}')
    })

    use('followers that start anywhere, stop and resume miss nothing and see nothing twice', async store => {
      const follow = async (from: number) => {
        const events: StoreEvent[] = []
        for (let at = from; at < 301; ) {
          const cursor = store.watch(teams, at)
          const target = Math.min(at + 37, 301)
          events.push(...(await drain(cursor, target)))
          at = cursor.revision
          cursor.close()
        }
        return events.map(event => event.revision)
      }
      const followers = [1, 1, 1].map(follow)
      for (let i = 0; i < 300; i += 10) {
        await Promise.all(Array.from({ length: 10 }, (_, n) => store.commit([put(`n${n}`)])))
        if (i % 50 === 0) followers.push(follow(store.revision - 3))
      }
      const expected = Array.from({ length: 300 }, (_, i) => i + 2)
      for (const revisions of await Promise.all(followers)) {
        assert.deepEqual(revisions, expected.slice(-revisions.length))
      }
    })

    use("a cursor's revision follows the whole store once it has taken everything of its bucket", async store => {
      const cursor = store.watch(teams, 1)
      await store.commit([{ type: 'put', key: key('s', '', secrets), value: value() }])
      assert.equal(cursor.revision, 2)
      await store.commit([put('a')])
      await store.commit([put('b')])
      assert.equal(cursor.revision, 2, 'an event that was not taken is not covered')
      cursor.take(1)
      assert.equal(cursor.revision, 3)
      cursor.take(1)
      await store.commit([{ type: 'delete', key: key('s', '', secrets) }])
      assert.equal(cursor.revision, 5)
      assert.deepEqual(store.watch(teams, 5).take(9), [])
    })

    use('a waiter is called once, only for its own bucket, and never after close', async store => {
      const calls: string[] = []
      const [one, two] = [store.watch(teams, 1), store.watch(teams, 1)]
      one.wait(() => calls.push('one'))
      two.wait(() => calls.push('two'))
      two.close()
      await store.commit([{ type: 'put', key: key('s', '', secrets), value: value() }])
      assert.equal(calls.length, 0)
      await store.commit([put('a')])
      await store.commit([put('b')])
      assert.deepEqual(calls, ['one'])
      one.wait(() => calls.push('again'))
      assert.deepEqual(calls, ['one'], 'never inside the call')
      await Promise.resolve()
      assert.deepEqual(calls, ['one', 'again'])
      assert.deepEqual(two.take(9), [])
    })

    use('a watch from the future is refused', async store => {
      refusedNow(() => store.watch(teams, 2), 'future')
    })
  })

  describe(`${engine}: history`, () => {
    const bounds = { minAgeMs: 1000, minEvents: 10 }

    use('the last state of an object is the newest, or the one that its deletion removed', async store => {
      await store.commit([put('a', 0, 'first')])
      const first = store.get(key('a')) as Entry
      assert.equal(store.last(first)?.revision, 2)
      await store.commit([put('a', 2, 'changed')])
      assert.equal(store.last(first)?.revision, 3)
      await store.commit([remove('a')])
      assert.equal(store.last(first)?.revision, 3)
      await store.commit([put('a', 0, 'another')])
      const second = store.get(key('a')) as Entry
      await store.commit([{ type: 'delete', key: key('a') }])
      await store.commit([put('a', 0, 'a third')])
      assert.deepEqual([store.last(first)?.revision, store.last(second)?.revision], [3, 5])
      const event = store.watch(teams, 1).take(1)[0] as StoreEvent
      assert.equal(store.last(event.entry)?.text.toString(), '{"metadata":{"resourceVersion":"3"},"note":"changed"}')
    })

    use(
      'the last state of a deleted object is forgotten with its deletion',
      async store => {
        await store.commit([put('gone')])
        const entry = store.get(key('gone')) as Entry
        await store.commit([remove('gone')])
        await store.commit([put('kept')])
        const kept = store.get(key('kept')) as Entry
        await write(store, 10)
        await store.commit([remove('kept')])
        clock += 1000
        await store.compact(5)
        assert.equal(store.last(entry), undefined)
        assert.equal(store.last(kept)?.revision, kept.revision)
      },
      bounds,
    )
    const write = async (store: Store, count: number) => {
      for (let i = 0; i < count; i++) await store.commit([put('a')])
    }

    use(
      'history is kept while it is young or among the newest, and then refused as compacted',
      async store => {
        await write(store, 30)
        await store.compact(store.revision)
        assert.equal(store.watch(teams, 1).take(99).length, 30, 'young')
        clock += 1000
        await store.compact(store.revision)
        refusedNow(() => store.watch(teams, 20), 'compacted')
        refusedNow(() => store.list({ bucket: teams, revision: 20 }), 'compacted')
        assert.equal(store.watch(teams, 21).take(99).length, 10, 'old, but among the newest')
        assert.equal(store.list({ bucket: teams, revision: 21 }).entries[0]?.revision, 21)
      },
      bounds,
    )

    use(
      'compact forgets nothing after the revision it is given',
      async store => {
        await write(store, 30)
        clock += 1000
        await store.compact(5)
        refusedNow(() => store.watch(teams, 4), 'compacted')
        assert.equal(store.watch(teams, 5).take(99).length, 26)
      },
      bounds,
    )

    use(
      'a cursor behind the compacted revision gets an error; one that keeps up does not',
      async store => {
        await store.commit([put('a')])
        const [slow, quick] = [store.watch(teams, 1), store.watch(teams, 1)]
        const idle = store.watch(secrets, 1)
        for (let i = 0; i < 30; i++) {
          clock += 1000
          await store.commit([put('a')])
          quick.take(9)
        }
        assert.ok(slow.revision < 21)
        refusedNow(() => slow.take(9), 'compacted')
        await new Promise<void>(resolve => slow.wait(resolve))
        assert.deepEqual(quick.take(9), [])
        assert.deepEqual(idle.take(9), [], 'nothing of its bucket was dropped')
        assert.equal(idle.revision, 32)
      },
      bounds,
    )

    use(
      'superseded values over the byte cap are dropped whatever their age',
      async store => {
        for (let i = 0; i < 20; i++) await store.commit([put('a', undefined, 'x'.repeat(1000))])
        refusedNow(() => store.watch(teams, 5), 'compacted')
        assert.equal(store.watch(teams, store.revision - 5).take(99).length, 5)
      },
      { ...bounds, maxBytes: 10_000 },
    )
  })
}
