// Claims an empty prefix of etcd for a migration or restore. Servers refuse the prefix until the copy is complete.
//
// The record of the installation is written first, without an offset. Every later write compares its revision. So a claim ends when
// another migration or restore claims the prefix, and a write that arrives late has no effect.

import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { EtcdClient } from './client.ts'
import { checkMembers, EtcdSetupError, encodeRecord, parseRecord, readRecord, requireNoKeys } from './installation.ts'
import { type KeyRange, type Keys, keysBelow } from './keys.ts'
import { type Compare, Compare_CompareResult, Compare_CompareTarget, type RequestOp } from './rpc.generated.ts'

export type PrefixOptions = {
  /** A patient one. */
  readonly client: EtcdClient
  readonly prefix: string
  readonly allowUnsafeVersion?: boolean | undefined
}

export type Claim = {
  readonly client: EtcdClient
  readonly keys: Keys
  /** The etcd revision of the claim. Later writes have higher ones. */
  readonly revision: number
  /** Writes while the claim is valid. May apply the operations twice. */
  write(ops: readonly RequestOp[]): Promise<void>
  /** Makes the prefix an installation, which servers accept. */
  complete(offset: number): Promise<void>
  /** Deletes everything that was written. */
  abandon(): Promise<void>
}

const none = Buffer.alloc(0)

/** Refuses a prefix that is not empty. Deletes the keys of an incomplete migration or restore. */
export async function claimPrefix({ client, prefix, allowUnsafeVersion = false }: PrefixOptions): Promise<Claim> {
  const keys = keysBelow(prefix)
  const key = keys.ofRecord('installation')
  await checkMembers(client, allowUnsafeVersion)
  await requireNoReplicas(client, prefix)
  const [earlier] = (await client.range({ key })).kvs
  if (!earlier) await requireNoKeys(client, keys, prefix)
  else if (parseRecord(earlier.value, prefix).offset !== undefined)
    throw new EtcdSetupError(
      `the prefix ${prefix} of etcd already holds an installation. Choose another one with --etcd-prefix, or delete its keys: etcdctl del --prefix ${prefix}/`,
    )
  const id = randomUUID()
  await client.txn({
    compare: [isUnchanged(key, earlier?.modRevision ?? 0), isUnchanged(keys.ofRecord('leader'), 0)],
    success: [put(key, encodeRecord(id))],
    failure: [],
  })
  // Read back: of several attempts the first may have succeeded, and another program may have been faster.
  const [stored] = (await client.range({ key })).kvs
  if (!stored || parseRecord(stored.value, prefix).id !== id)
    throw new EtcdSetupError(`another program uses the prefix ${prefix} of etcd. Retry when it has ended`)
  const fence = isUnchanged(key, stored.modRevision)
  const takenOver = () => new EtcdSetupError(`another migration or restore has taken over the prefix ${prefix} of etcd`)
  const claim: Claim = {
    client,
    keys,
    revision: stored.modRevision,
    async write(ops) {
      const { succeeded } = await client.txn({ compare: [fence], success: [...ops], failure: [] })
      if (!succeeded) throw takenOver()
    },
    async complete(offset) {
      const value = encodeRecord(id, offset)
      const { succeeded } = await client.txn({ compare: [fence], success: [put(key, value)], failure: [] })
      if (succeeded) return
      // The first of several attempts may have succeeded.
      const [completed] = (await client.range({ key })).kvs
      if (!completed?.value.equals(value)) throw takenOver()
    },
    async abandon() {
      await deleteCopy(claim)
      // At once with the record, so that a write that is still under way leaves nothing behind.
      await claim.write([remove(keys.all)])
    },
  }
  if (earlier) await deleteCopy(claim)
  return claim
}

/** Throws if a replica runs. During a takeover there is no leader. */
export async function requireNoReplicas(client: Pick<EtcdClient, 'range'>, prefix: string): Promise<void> {
  const { ofRecord, runningReplicas } = keysBelow(prefix)
  const counts = [
    await client.range({ key: ofRecord('leader'), countOnly: true }),
    await client.range({ ...runningReplicas, countOnly: true }),
  ]
  if (counts.some(({ count }) => count > 0))
    throw new EtcdSetupError(
      `replicas use the prefix ${prefix} of etcd. Stop all of them, and retry. If they were killed, retry in ten seconds`,
    )
}

/** The offset of a complete installation. */
export async function offsetOf({ client, prefix, allowUnsafeVersion = false }: PrefixOptions): Promise<number> {
  await checkMembers(client, allowUnsafeVersion)
  const [stored] = (await client.range({ key: keysBelow(prefix).ofRecord('installation') })).kvs
  if (!stored)
    throw new EtcdSetupError(
      `the prefix ${prefix} of etcd holds no installation. Set --etcd-prefix to the one of the replicas`,
    )
  return readRecord(stored.value, prefix).offset
}

const isUnchanged = (key: Buffer, modRevision: number): Compare => ({
  result: Compare_CompareResult.EQUAL,
  target: Compare_CompareTarget.MOD,
  key,
  modRevision,
})

export const put = (key: Buffer, value: Buffer): RequestOp => ({ requestPut: { key, value, lease: 0 } })
const remove = (range: KeyRange): RequestOp => ({ requestDeleteRange: range })

const keysAtOnce = 1000

/** Deletes all keys but the record of the installation, some at a time. */
async function deleteCopy({ client, keys, write }: Claim): Promise<void> {
  await write([remove({ key: keys.ofRecord('serving-ca'), rangeEnd: none })])
  for (const range of [keys.objects, keys.times])
    for (let isEmpty = false; !isEmpty; ) {
      const { kvs, more } = await client.range({ ...range, keysOnly: true, limit: keysAtOnce })
      const last = kvs.at(-1)
      if (last) await write([remove({ key: range.key, rangeEnd: Buffer.concat([last.key, Buffer.of(0)]) })])
      isEmpty = !more
    }
}
