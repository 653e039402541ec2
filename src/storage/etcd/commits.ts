// Sends commits to etcd, one transaction each, and waits until their events are in memory.

import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { checkOps } from '../commit-queue.ts'
import { type Key, type Op, StoreError } from '../store.ts'
import type { WatchCache } from '../watch-cache.ts'
import { type EtcdClient, EtcdError } from './client.ts'
import type { Following } from './follow.ts'
import type { StorageHealth } from './health.ts'
import { type Fence, rejectionOf, type TxnOptions, txnOf } from './txn.ts'
import { resolveUnknown } from './unknown-outcome.ts'
import { nonceBytes } from './value.ts'

export type Commits = {
  commit(ops: readonly Op[], fence?: Fence): Promise<number>
  /** Called for every value that the watch delivers. */
  saw(nonce: Buffer, revision: number): void
  /** Resolves when all earlier commits are finished. Later ones are rejected. */
  close(): Promise<void>
}

type CommitOptions = Pick<TxnOptions, 'keys' | 'offset' | 'installation'> & {
  readonly client: Pick<EtcdClient, 'txn'>
  readonly health: StorageHealth
  readonly following: () => Pick<Following, 'reach'>
  readonly watchCache: Pick<WatchCache, 'floor' | 'eventsOf'>
}

const appliedMs = 5000

export function openCommits({ client, health, following, watchCache, ...fixed }: CommitOptions): Commits {
  /** The commits whose value this replica waits to see, by nonce; with the revision once it was seen. */
  const awaited = new Map<string, number>()
  const running = new Set<Promise<unknown>>()
  let closed = false

  async function send(ops: readonly Op[], fence: Fence | undefined): Promise<number> {
    if (closed) throw new StoreError('unavailable', 'the store is closed')
    checkOps(ops)
    // The permissions in memory may be as old.
    if (health.outdated !== undefined) throw new StoreError('unavailable', health.outdated)
    const nonce = randomBytes(nonceBytes)
    const id = nonce.toString('latin1')
    const txn: TxnOptions = { ...fixed, nonce, fence }
    const request = txnOf(ops, txn)
    awaited.set(id, 0)
    try {
      const response = await client.txn(request)
      const revision = response.header?.revision ?? 0
      // A rejected writer reads again, and must then see what it was rejected for.
      await following()
        .reach(revision, appliedMs)
        .catch(() => {})
      if (!response.succeeded) throw rejectionOf(ops, response, txn)
      health.works()
      return revision + fixed.offset
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (error.outcome === 'rejected') throw health.rejected(error)
      return await resolveUnknown({
        ops: ops.filter(({ type }) => type !== 'check'),
        request,
        client,
        error,
        seen: () => awaited.get(id) || undefined,
        reach: revision => following().reach(revision, appliedMs),
        rejection: response => rejectionOf(ops, response, txn),
        firstChange,
        offset: fixed.offset,
      })
    } finally {
      awaited.delete(id)
    }
  }

  /** The first change of a key after a revision, if history still has it. */
  function firstChange(key: Key, after: number): 'put' | 'delete' | undefined {
    if (after < watchCache.floor) return undefined
    const [first] = watchCache.eventsOf(key, after)
    return first && (first.type === 'deleted' ? 'delete' : 'put')
  }

  return {
    commit(ops, fence) {
      const done = send(ops, fence)
      running.add(done)
      const forget = () => void running.delete(done)
      done.then(forget, forget)
      return done
    },
    saw(nonce, revision) {
      if (awaited.size === 0) return
      const id = nonce.toString('latin1')
      if (awaited.has(id)) awaited.set(id, revision)
    },
    async close() {
      closed = true
      await Promise.allSettled(running)
    },
  }
}
