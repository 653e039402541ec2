// The commit queue of an engine with a single writer: collects commits, checks preconditions, writes a batch, and publishes it.
// One batch is written at a time, so preconditions are checked against the durable state plus earlier commits of the same batch. The next
// batch collects meanwhile, so concurrent commits share an fsync.

import { type CommitOutcome, compareAndSwap, type Pending } from './compare-and-swap.ts'
import { checkValue } from './entry.ts'
import { labelsOf, sharedLabels } from './labels.ts'
import { type Op, StoreError } from './store.ts'
import type { CachedEvent, WatchCache } from './watch-cache.ts'

export type Batch = { readonly events: readonly CachedEvent[]; readonly revision: number; readonly time: number }

export type CommitQueue = {
  commit(ops: readonly Op[]): Promise<number>
  /** Resolves when all earlier commits are finished. Later ones are rejected. */
  close(): Promise<void>
}

/** The limit of etcd, for all engines. */
const MAX_OPS = 128
const MAX_COMMITS = 2048
const MAX_BYTES = 16 * 2 ** 20

/** `write` resolves when the batch is durable. It rejects with the reason if none of the batch was written. */
export function openCommitQueue(options: {
  readonly watchCache: WatchCache
  readonly write: (batch: Batch) => Promise<void>
  readonly now: () => number
}): CommitQueue {
  const { watchCache, write, now } = options
  let waiting: Pending[] = []
  let scheduled = false
  let writing: Promise<void> | undefined
  let closed = false

  function schedule(): void {
    if (scheduled || writing !== undefined || waiting.length === 0) return
    scheduled = true
    queueMicrotask(() => {
      scheduled = false
      start()
    })
  }

  function start(): void {
    const size = batchSize(waiting)
    const commits = waiting.slice(0, size)
    waiting = waiting.slice(size)
    const { events, revision, outcomes } = compareAndSwap(commits, watchCache)
    if (events.length === 0) {
      answer(outcomes)
      schedule()
      return
    }
    const time = now()
    writing = write({ events, revision, time }).then(
      () => {
        watchCache.apply(events, revision, time)
        finish(outcomes)
      },
      (error: unknown) => finish(outcomes.map(outcome => refuse(outcome, error))),
    )
  }

  /** Starts the next batch before this one is acknowledged, so that the disk does not wait for the acknowledgements. */
  function finish(outcomes: readonly CommitOutcome[]): void {
    writing = undefined
    if (waiting.length > 0) start()
    answer(outcomes)
  }

  return {
    async commit(ops) {
      if (closed) throw new StoreError('unavailable', 'the store is closed')
      const labels = checkOps(ops)
      return new Promise((resolve, reject) => {
        waiting.push({ ops, labels, resolve, reject })
        schedule()
      })
    },
    async close() {
      closed = true
      while (scheduled || writing !== undefined || waiting.length > 0) await (writing ?? Promise.resolve())
    },
  }
}

/** An invalid commit is a bug of the caller, not a state of the store. */
export function checkOps(ops: readonly Op[]): Pending['labels'] {
  if (ops.length === 0 || ops.length > MAX_OPS) throw new TypeError(`a commit has 1 to ${MAX_OPS} ops`)
  const changes = ops.filter(({ type }) => type !== 'check')
  if (changes.length === 0) throw new TypeError('a commit changes at least one key')
  if (new Set(changes.map(op => op.key.bucket)).size < changes.length) {
    throw new TypeError('a commit changes at most one key of a bucket')
  }
  return ops.map(op => {
    if (op.type !== 'put') return undefined
    checkValue(op.value)
    const { index, text } = op.value
    return index ? sharedLabels(index.labels) : labelsOf(text)
  })
}

/** The number of waiting commits in the next batch: enough to share an fsync, and not so many that the first one waits for megabytes. */
function batchSize(waiting: readonly Pending[]): number {
  let bytes = 0
  for (const [i, { ops }] of waiting.entries()) {
    for (const op of ops) if (op.type === 'put') bytes += op.value.text.length
    if (i + 1 === MAX_COMMITS || bytes >= MAX_BYTES) return i + 1
  }
  return waiting.length
}

/** A rejection because of the failed batch itself is no longer true. A rejection because of durable state stays. */
function refuse(outcome: CommitOutcome, error: unknown): CommitOutcome {
  if (outcome.error !== undefined && !outcome.withinBatch) return outcome
  const reason = error instanceof StoreError ? error : new StoreError('unavailable', String(error))
  return { pending: outcome.pending, revision: 0, error: reason, withinBatch: false }
}

function answer(outcomes: readonly CommitOutcome[]): void {
  for (const { pending, revision, error } of outcomes) {
    if (error === undefined) pending.resolve(revision)
    else pending.reject(error)
  }
}
