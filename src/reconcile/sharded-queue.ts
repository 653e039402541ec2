// Work queue with several shards. A name always uses the same shard, so it never runs concurrently and a slow one delays few
// others. Failures back off exponentially with jitter.

import { ApiError } from '../api/errors.ts'
import { startLoop } from './work-queue.ts'

export type ShardedQueueOptions = {
  readonly shards: number
  /** A rejection causes a retry. A number schedules another run after that many milliseconds. */
  readonly work: (name: string) => Promise<number | undefined>
  readonly failed: (name: string, error: unknown, attempts: number) => void
  /** From 0 to 1. */
  readonly random: () => number
  /** The longest back-off in milliseconds. Default: a minute. */
  readonly maxDelay?: number
}

export interface ShardedQueue {
  add(name: string): void
  /** Forgets earlier failures of a name, so that its next back-off starts small. */
  resetBackoff(name: string): void
  /** Names that are queued or in progress, without those waiting for a retry. */
  readonly depth: number
  /** Names whose last attempt failed. */
  readonly failing: ReadonlyMap<string, { readonly attempts: number; readonly error: unknown }>
  idle(): Promise<void>
  stop(): Promise<void>
}

const minDelay = 100
/** Upper limit for Retry-After. */
const maxRetryAfter = 300_000

export function startShardedQueue(options: ShardedQueueOptions): ShardedQueue {
  const { shards, work, failed, random, maxDelay = 60_000 } = options
  const failing = new Map<string, { attempts: number; error: unknown }>()
  const pending = new Set<string>()
  const reconcile = async (name: string): Promise<number | undefined> => {
    pending.delete(name)
    inProgress++
    try {
      const again = await work(name)
      failing.delete(name)
      return again
    } catch (error) {
      const attempts = (failing.get(name)?.attempts ?? 0) + 1
      failing.set(name, { attempts, error })
      failed(name, error, attempts)
      const retryAfter = error instanceof ApiError ? (error.status.details?.retryAfterSeconds ?? 0) * 1000 : 0
      const wait = Math.min(maxDelay, minDelay * 2 ** Math.min(attempts - 1, 20))
      return Math.max(Math.min(retryAfter, maxRetryAfter), wait * (0.5 + random()))
    } finally {
      inProgress--
    }
  }
  let inProgress = 0
  const loops = Array.from({ length: shards }, () => startLoop({ reconcile, failed: () => {} }))
  return {
    add(name) {
      pending.add(name)
      loops[shardOf(name, shards)]?.add(name)
    },
    resetBackoff(name) {
      const failure = failing.get(name)
      if (failure) failure.attempts = 0
    },
    get depth() {
      return pending.size + inProgress
    },
    failing,
    async idle() {
      await Promise.all(loops.map(loop => loop.idle()))
    },
    async stop() {
      await Promise.all(loops.map(loop => loop.stop()))
    },
  }
}

function shardOf(name: string, shards: number): number {
  let sum = 0
  for (let at = 0; at < name.length; at++) sum = (Math.imul(sum, 31) + name.charCodeAt(at)) | 0
  return (sum >>> 0) % shards
}
