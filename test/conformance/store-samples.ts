// Keys, values and small steps that the store suites share.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryBounds } from '../../src/storage/event-log.ts'
import type { Cursor, Key, Store, StoreErrorReason, StoreEvent, Value } from '../../src/storage/store.ts'
import { StoreError } from '../../src/storage/store.ts'

export type Opening = { readonly now: () => number; readonly history?: HistoryBounds }
/** Opens an empty store. The suite closes it. */
export type OpenStore = (options: Opening) => Promise<Store>

export const teams = 'teams.test'
export const secrets = 'secrets.test'

export function key(name: string, namespace = '', bucket = teams): Key {
  return { bucket, namespace, name }
}

export function value(fields: { labels?: { [key: string]: string }; note?: string } = {}): Value {
  const labels = fields.labels === undefined ? '' : `"labels":${JSON.stringify(fields.labels)},`
  const head = `{"metadata":{${labels}"resourceVersion":"`
  return { text: Buffer.from(`${head}"},"note":${JSON.stringify(fields.note ?? '')}}`), gap: Buffer.byteLength(head) }
}

export async function refused(promise: Promise<unknown>, reason: StoreErrorReason): Promise<StoreError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof StoreError, `expected StoreError '${reason}', got ${String(error)}`)
  assert.equal(error.reason, reason)
  return error
}

export function refusedNow(run: () => unknown, reason: StoreErrorReason): void {
  assert.throws(run, (error: unknown) => error instanceof StoreError && error.reason === reason)
}

export const put = (name: string, expect?: number, note?: string) =>
  ({
    type: 'put',
    key: key(name),
    value: value(note === undefined ? {} : { note }),
    ...(expect === undefined ? {} : { expect }),
  }) as const
export const remove = (name: string, expect?: number) =>
  ({ type: 'delete', key: key(name), ...(expect === undefined ? {} : { expect }) }) as const
export const check = (name: string, expect: number) => ({ type: 'check', key: key(name), expect }) as const

export const text = (store: Store, name: string) => store.get(key(name))?.text.toString()
export const names = (events: readonly StoreEvent[]) =>
  events.map(event => `${event.revision} ${event.type} ${event.key.name}`)

/** Everything a cursor delivers until it has seen `revision`. */
export async function drain(cursor: Cursor, revision: number, max = 7): Promise<StoreEvent[]> {
  const events: StoreEvent[] = []
  for (;;) {
    events.push(...cursor.take(max))
    if (cursor.revision >= revision) return events
    await new Promise<void>(resolve => cursor.wait(resolve))
  }
}

/** A test with a store of its own, which is closed afterwards. */
export type Use = (name: string, run: (store: Store) => Promise<void>, history?: HistoryBounds) => void

export function useStore(open: OpenStore, now: () => number): Use {
  return (name, run, history) =>
    void test(name, async () => {
      const store = await open({ now, ...(history === undefined ? {} : { history }) })
      try {
        await run(store)
      } finally {
        await store.close()
      }
    })
}
