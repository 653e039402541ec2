// Makes this replica known to the others, and lists them: those that run, and those that ran in the last 30 days.

import { Buffer } from 'node:buffer'
import type { Replica, ReplicaRecord, Replicas } from '../storage.ts'
import type { ReplicaLease } from './lease.ts'
import { Compare_CompareResult, Compare_CompareTarget } from './rpc.generated.ts'
import { openSleep } from './sleep.ts'
import { readSnapshot } from './snapshot.ts'
import type { EtcdInternals } from './store.ts'

export type Membership = Replicas & { stop(): Promise<void> }

type Known = ReplicaRecord & { readonly seen: number }

const [refreshMs, retryMs, conflictMs] = [10_000, 1000, 10_000]
const [seenEveryMs, forgetAfterMs] = [3600_000, 30 * 24 * 3600_000]

export function openMembership(
  { client, keys, onRecord }: EtcdInternals,
  lease: ReplicaLease,
  now: () => number,
): Membership {
  const { sleep, wake } = openSleep()
  const listeners: (() => void)[] = []
  let self: ReplicaRecord | undefined
  /** The lease of the stored record, and the time in it. */
  let stored: { readonly lease: number; readonly seen: number } | undefined
  let others: readonly Replica[] = []
  let stopped = false

  lease.onChange(wake)
  onRecord(({ kv }) => {
    if (kv && keys.isOfReplica(kv.key)) wake()
  })

  async function write(record: ReplicaRecord, id: number): Promise<void> {
    const seen = now()
    const put = (key: Buffer, value: object, bound: number) => ({
      requestPut: { key, value: Buffer.from(JSON.stringify(value)), lease: bound },
    })
    await client.txn({
      compare: [],
      success: [
        put(keys.ofReplica(record.id), record, id),
        put(keys.ofKnownReplica(record.id), { ...record, seen }, 0),
      ],
      failure: [],
    })
    stored = { lease: id, seen }
  }

  async function refresh(): Promise<void> {
    const running = new Map<string, ReplicaRecord>()
    const known = new Map<string, Replica>()
    for await (const page of readSnapshot(client, keys.replicas, 0))
      for (const { key, value, modRevision } of page) {
        const record = parse(value)
        if (!record) continue
        if (key.equals(keys.ofReplica(record.id))) running.set(record.id, record)
        else if (now() - record.seen < forgetAfterMs) known.set(record.id, { ...record, isRunning: false })
        else await forget(key, modRevision)
      }
    if (self && !running.has(self.id)) stored = undefined
    for (const record of running.values()) known.set(record.id, { ...record, isRunning: true })
    if (self) known.delete(self.id)
    const next = [...known.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const isChanged = JSON.stringify(next) !== JSON.stringify(others)
    others = next
    if (isChanged) for (const listener of listeners) listener()
  }

  async function forget(key: Buffer, modRevision: number): Promise<void> {
    const isUnchanged = {
      result: Compare_CompareResult.EQUAL,
      target: Compare_CompareTarget.MOD,
      key,
      modRevision,
    }
    const success = [{ requestDeleteRange: { key, rangeEnd: Buffer.alloc(0) } }]
    await client.txn({ compare: [isUnchanged], success, failure: [] })
  }

  async function update(): Promise<void> {
    const { id } = lease
    const isStored = stored !== undefined && stored.lease === id && now() - stored.seen < seenEveryMs
    if (self && id !== undefined && !isStored) await write(self, id)
    await refresh()
  }

  async function run(): Promise<void> {
    while (!stopped) {
      const isDone = await update().then(
        () => !self || stored !== undefined,
        () => false,
      )
      await sleep(isDone ? refreshMs : retryMs)
    }
  }

  /** A killed replica may start again at another address before its lease expires. */
  async function checkId({ id, url }: ReplicaRecord): Promise<void> {
    const deadline = performance.now() + conflictMs
    for (;;) {
      const [kv] = (await client.range({ key: keys.ofReplica(id) })).kvs
      const other = kv && parse(kv.value)
      if (!other || other.url === url) return
      if (performance.now() > deadline)
        throw new Error(
          `the replica ${other.url} has the same id as this one (${id}): if this data directory is a copy, delete replica.id in it`,
        )
      await sleep(retryMs / 2)
    }
  }

  let running: Promise<void> | undefined
  return {
    async register(record) {
      await checkId(record)
      self = record
      running = run()
    },
    others: () => others,
    onChange: listener => void listeners.push(listener),
    async stop() {
      stopped = true
      wake()
      await running
    },
  }
}

/** Undefined if another program wrote it. */
function parse(value: Buffer): Known | undefined {
  try {
    const { id, url, version, startedAt, seen = 0 } = JSON.parse(value.toString()) as Partial<Known>
    const isComplete = [id, url, version, startedAt].every(one => typeof one === 'string') && typeof seen === 'number'
    const isValid = isComplete && (url === '' || (URL.canParse(url ?? '') && new URL(url ?? '').protocol === 'https:'))
    return isValid ? ({ id, url, version, startedAt, seen } as Known) : undefined
  } catch {
    return undefined
  }
}
