// Opens the etcd engine with what replicas share: the leader, the list of replicas, last-used times, compaction and records.

import { Buffer } from 'node:buffer'
import type { SharedRecords, Storage, StorageOptions } from '../storage.ts'
import { startCompaction } from './compaction.ts'
import { openLeadership } from './leadership.ts'
import { openLease } from './lease.ts'
import { openMembership } from './membership.ts'
import { Compare_CompareResult, Compare_CompareTarget } from './rpc.generated.ts'
import { type EtcdInternals, openEtcdStore } from './store.ts'
import { openSharedActivity } from './times.ts'

export async function openEtcdStorage({ etcd, now, reportFailure, lost }: StorageOptions): Promise<Storage> {
  if (!etcd) throw new Error('the engine etcd requires --etcd-endpoints')
  const store = await openEtcdStore({ ...etcd, now, reportFailure, lost })
  const { internals } = store
  const { client, keys } = internals
  const { count } = await client.range({ ...keys.objects, countOnly: true })
  const activity = await openSharedActivity(internals)
  const lease = openLease(client)
  const leadership = openLeadership(internals, lease)
  const membership = openMembership(internals, lease, now)
  leadership.run(() => startCompaction(store, now, error => reportFailure?.(`compacting etcd: ${error.message}`)))
  return {
    store,
    activity,
    isEmpty: count === 0,
    controllerStore: store.fenced(leadership.fence),
    lead(start) {
      leadership.run(start)
      // Not before: a replica with the wrong master key must not lead.
      leadership.join()
      return { stop: leadership.stop }
    },
    isLeader: () => leadership.fence() !== undefined,
    records: recordsOf(internals),
    replicas: membership,
    async close() {
      await Promise.all([leadership.stop(), membership.stop()])
      await lease.stop()
      // A failing etcd must not stop the server from shutting down.
      await activity.close().catch(() => {})
      await store.close()
    },
  }
}

function recordsOf({ client, keys }: EtcdInternals): SharedRecords {
  const read: SharedRecords['read'] = async name => {
    const [kv] = (await client.range({ key: keys.ofRecord(name) })).kvs
    return kv && Buffer.from(kv.value)
  }
  return {
    read,
    async claim(name, value) {
      const key = keys.ofRecord(name)
      const isFree = {
        result: Compare_CompareResult.EQUAL,
        target: Compare_CompareTarget.CREATE,
        key,
        createRevision: 0,
      }
      const success = [{ requestPut: { key, value, lease: 0 } }]
      // Read back, because another replica may have been first, and a response may be lost.
      await client.txn({ compare: [isFree], success, failure: [] }).catch(() => {})
      const stored = await read(name)
      if (!stored) throw new Error(`etcd did not store the record ${name}; start again`)
      return stored
    },
    async replace(name, value) {
      await client.txn({
        compare: [],
        success: [{ requestPut: { key: keys.ofRecord(name), value, lease: 0 } }],
        failure: [],
      })
    },
  }
}
