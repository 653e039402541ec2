// Shares last-used times among replicas (D19): a key per id, without a place in the history of objects.

import { Buffer } from 'node:buffer'
import { type Activity, openActivity, type SaveTimes } from '../last-used.ts'
import type { RequestOp } from './rpc.generated.ts'
import { readSnapshot } from './snapshot.ts'
import type { EtcdInternals } from './store.ts'

/** Replicas must know each other's times within 30 seconds. */
const saveEveryMs = 10_000
const opsOfTxn = 100
const none = Buffer.alloc(0)

export async function openSharedActivity({ client, keys, onRecord }: EtcdInternals): Promise<Activity> {
  const loaded = new Map<string, number>()
  // Merged again once the table is open: an event may arrive while it is read.
  let merge: Activity['merge'] = (id, time) => {
    if (time === undefined) loaded.delete(id)
    else loaded.set(id, time)
  }
  onRecord(({ type, kv }) => {
    const id = kv && keys.timeOf(kv.key)
    if (id !== undefined) merge(id, type === 0 ? Number(kv?.value.toString()) : undefined)
  })
  for await (const page of readSnapshot(client, keys.times, 0))
    for (const { key, value } of page) loaded.set(keys.timeOf(key)!, Number(value.toString()))

  const save: SaveTimes = async times => {
    for (let at = 0; at < times.length; at += opsOfTxn) {
      const success = times.slice(at, at + opsOfTxn).map(([id, time]): RequestOp => {
        const key = keys.ofTime(id)
        return time === undefined
          ? { requestDeleteRange: { key, rangeEnd: none } }
          : { requestPut: { key, value: Buffer.from(String(time)), lease: 0 } }
      })
      // A repeated write does no harm, so an unknown outcome is simply tried again.
      await client.txn({ compare: [], success, failure: [] })
    }
  }
  const activity = openActivity({ loaded, save, intervalMs: saveEveryMs })
  merge = activity.merge
  return activity
}
