// Watches share their events. The cache of events keeps no state that an event replaced.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { key, put, remove, teams, value } from '../../test/conformance/store-samples.ts'
import { keptBy } from '../../test/support/heap.ts'
import type { Kind } from '../api/kind.ts'
import { openMemoryStore } from '../storage/memory.ts'
import type { StoreEvent } from '../storage/store.ts'
import type { Context } from './context.ts'
import { eventOf } from './watch-event-cache.ts'

const ctx = { isInternal: false } as Context
const plain = { id: teams, hidden: [] as readonly string[], sealed: [] as readonly string[] } as Kind
const seen = ({ entry }: StoreEvent, type: 'ADDED' | 'MODIFIED' | 'DELETED') => eventOf(ctx, plain, entry, type)

describe('events that watches share', () => {
  test('each event of an object is shared by type, and has its own state', async () => {
    const store = openMemoryStore()
    await store.commit([put('a', 0, 'one')])
    await store.commit([put('a', undefined, 'two')])
    await store.commit([remove('a')])
    const [created, updated, deleted] = store.watch(teams, 1).take(3) as [StoreEvent, StoreEvent, StoreEvent]
    const events = [
      seen(created, 'ADDED'),
      seen(updated, 'MODIFIED'),
      seen(updated, 'ADDED'), // for a view that the update moved the object into
      seen(deleted, 'DELETED'),
    ]
    const line = (type: string, revision: number, note: string) =>
      `{"type":"${type}","object":{"metadata":{"resourceVersion":"${revision}"},"note":"${note}"}}\n`
    assert.deepEqual(
      events.map(event => Buffer.from(event.line).toString()),
      [line('ADDED', 2, 'one'), line('MODIFIED', 3, 'two'), line('ADDED', 3, 'two'), line('DELETED', 4, 'two')],
    )
    assert.equal(seen(created, 'ADDED'), events[0])
    assert.equal(seen(updated, 'MODIFIED'), events[1])
    assert.equal(seen(updated, 'ADDED'), events[2])
    assert.equal(seen(deleted, 'DELETED'), events[3])
  })

  test('the cache keeps no replaced state after the history forgot it', async () => {
    const rounds = 30
    let time = 0
    const bytes = await keptBy(async () => {
      const store = openMemoryStore({ now: () => time, history: { minAgeMs: 1000, minEvents: 1 } })
      const cursor = store.watch(teams, store.revision)
      for (let round = 0; round < rounds; round++) {
        await store.commit([put('a', 0, 'x'.repeat(1_000_000))])
        await store.commit([put('a', undefined, 'small')])
        const events = cursor.take(2)
        seen(events[1] as StoreEvent, 'ADDED')
        await store.commit([remove('a')])
        cursor.take(1)
      }
      for (let later = 0; later < 100; later++) {
        time += 1000
        await store.commit([{ type: 'put', key: key('other', '', 'other.test'), value: value() }])
      }
      return store
    })
    assert.ok(bytes < 5_000_000, `${bytes} bytes are kept after ${rounds} large states`)
  })
})
