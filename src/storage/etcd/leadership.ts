// Elects one replica as the leader, which runs the controllers. Its key in etcd is bound to its lease, and fences its writes.

import { Buffer } from 'node:buffer'
import type { Work } from '../storage.ts'
import type { ReplicaLease } from './lease.ts'
import { Compare_CompareResult, Compare_CompareTarget } from './rpc.generated.ts'
import { openSleep } from './sleep.ts'
import type { EtcdInternals } from './store.ts'
import type { Fence } from './txn.ts'

export type Leadership = {
  /** The fence of this replica's term; undefined: it is not the leader. */
  fence(): Fence | undefined
  /** Joins the election. */
  join(): void
  /** Runs the work whenever this replica is the leader. */
  run(start: () => Work): void
  /** Ends the work, and lets another replica take over at once. */
  stop(): Promise<void>
}

type Term = { readonly fence: Fence; readonly lease: number; isOver: boolean }

const retryMs = 1000

export function openLeadership({ client, keys, onRecord }: EtcdInternals, lease: ReplicaLease): Leadership {
  const key = keys.ofRecord('leader')
  const { sleep, wake } = openSleep()
  const starts: (() => Work)[] = []
  let works: Work[] = []
  let term: Term | undefined
  let stopped = false

  const isLeading = () => term !== undefined && !term.isOver && term.lease === lease.id

  lease.onChange(wake)
  onRecord(({ kv }) => {
    if (!kv?.key.equals(key)) return
    // Events of earlier terms may arrive late.
    if (term && kv.modRevision > term.fence.createRevision) term.isOver = true
    wake()
  })

  async function campaign(id: number): Promise<void> {
    const value = Buffer.from(String(id))
    const { succeeded, header } = await client.txn({
      compare: [created(0)],
      success: [{ requestPut: { key, value, lease: id } }],
      failure: [],
    })
    if (succeeded) return gain(id, header?.revision ?? 0)
    // An election whose response was lost may have been won.
    const [kv] = (await client.range({ key })).kvs
    if (kv?.value.equals(value)) gain(id, kv.createRevision)
  }

  const created = (createRevision: number) => ({
    result: Compare_CompareResult.EQUAL,
    target: Compare_CompareTarget.CREATE,
    key,
    createRevision,
  })

  function gain(id: number, createRevision: number): void {
    term = { fence: { key, createRevision }, lease: id, isOver: false }
    if (!stopped) works = starts.map(start => start())
  }

  async function endWork(): Promise<void> {
    const ending = works
    works = []
    await Promise.all(ending.map(work => work.stop()))
  }

  async function run(): Promise<void> {
    while (!stopped) {
      if (term && !isLeading()) {
        term = undefined
        await endWork()
      }
      const { id } = lease
      // An election that failed is repeated.
      if (!term && id !== undefined) await campaign(id).catch(() => {})
      await sleep(retryMs)
    }
  }

  async function end(): Promise<void> {
    stopped = true
    wake()
    await running
    await endWork()
    const createRevision = term?.fence.createRevision
    term = undefined
    if (createRevision === undefined) return
    const success = [{ requestDeleteRange: { key, rangeEnd: Buffer.alloc(0) } }]
    // If it fails, the key ends with the lease.
    await client.txn({ compare: [created(createRevision)], success, failure: [] }).catch(() => {})
  }

  let running: Promise<void> = Promise.resolve()
  let ending: Promise<void> | undefined
  return {
    join() {
      running = run()
    },
    fence: () => (isLeading() ? term?.fence : undefined),
    run(start) {
      starts.push(start)
      if (term) works.push(start())
    },
    stop: () => (ending ??= end()),
  }
}
