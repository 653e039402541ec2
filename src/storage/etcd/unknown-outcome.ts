// Finds out what became of a commit whose outcome is unknown, because the connection or a member of etcd failed.
//
// A commit that compares the revision of an existing key can be sent again: the key changes with the first of them that
// applies, so the second is rejected. A commit that only creates cannot: between the two, somebody may have deleted the object,
// and the second would create it again.

import { setTimeout as pause } from 'node:timers/promises'
import { type Key, type Op, StoreError } from '../store.ts'
import { type EtcdClient, EtcdError } from './client.ts'
import type { TxnRequest, TxnResponse } from './rpc.generated.ts'

export type UnknownOutcome = {
  /** The changes of the commit. A checked key tells nothing about its outcome. */
  readonly ops: readonly Op[]
  readonly request: TxnRequest
  readonly client: Pick<EtcdClient, 'txn'>
  readonly error: EtcdError
  /** The revision (with offset) at which the watch delivered a value of this commit. */
  readonly seen: () => number | undefined
  readonly reach: (revision: number) => Promise<void>
  readonly rejection: (response: TxnResponse) => StoreError
  /** The first change of a key after a revision (with offset); undefined: history does not tell. */
  readonly firstChange: (key: Key, after: number) => 'put' | 'delete' | undefined
  readonly offset: number
}

const [limitMs, retryMs] = [6000, 100]

export async function resolveUnknown(outcome: UnknownOutcome): Promise<number> {
  const { ops, seen, error } = outcome
  const isRepeatable = ops.some(({ expect = 0 }) => expect > 0)
  const deadline = performance.now() + limitMs
  while (performance.now() < deadline) {
    const revision = seen()
    if (revision !== undefined) return revision
    const found = isRepeatable ? await sendAgain(outcome) : undefined
    if (found !== undefined) return found
    await pause(retryMs)
  }
  const revision = seen()
  if (revision !== undefined) return revision
  throw new StoreError('unknown', `${error.message}; it is not known whether the change was stored`)
}

/** Resolves with undefined if the outcome is still unknown. Rejects if the commit has no effect. */
async function sendAgain({ request, client, seen, reach, rejection, offset, ...rest }: UnknownOutcome) {
  let response: TxnResponse
  try {
    response = await client.txn(request)
  } catch (error) {
    if (error instanceof EtcdError) return undefined
    throw error
  }
  const revision = response.header?.revision ?? 0
  const isReached = await reach(revision).then(
    () => true,
    () => false,
  )
  if (response.succeeded) return revision + offset
  if (!isReached) return undefined
  const earlier = seen()
  if (earlier !== undefined) return earlier
  if (mayHaveDeleted(rest))
    throw new StoreError('unknown', `${rest.error.message}; the object was deleted, by this request or by another`)
  throw rejection(response)
}

/** A commit that only deletes leaves no value. If its object was deleted, nobody knows by which commit. */
function mayHaveDeleted({ ops, firstChange }: Pick<UnknownOutcome, 'ops' | 'firstChange'>): boolean {
  if (ops.some(({ type }) => type === 'put')) return false
  return ops.every(({ key, expect = 0 }) => expect === 0 || firstChange(key, expect) !== 'put')
}
