// The commit queue of an engine that is the only writer: collects commits, checks their preconditions, writes them as one batch, then
// publishes them.
//
// One batch is written at a time, so preconditions are checked against the durable state plus earlier commits of the same batch. The
// next batch collects meanwhile, so concurrent commits share an fsync.

import { judge, type Pending, type Verdict } from './compare-and-swap.ts'
import { checkValue } from './entry.ts'
import { labelsOf } from './labels.ts'
import { type Op, StoreError } from './store.ts'
import type { HeldEvent, Replica } from './watch-cache.ts'

export type Batch = { readonly events: readonly HeldEvent[]; readonly revision: number; readonly time: number }

export type CommitQueue = {
  commit(ops: readonly Op[]): Promise<number>
  /** Resolves when everything handed in before is answered; what comes later is refused. */
  close(): Promise<void>
}

/** An engine numbers the ops of a commit within its revision. */
export const MOST_OPS = 1024
const MOST_COMMITS = 2048
const MOST_BYTES = 16 * 2 ** 20

/** `write` resolves when the batch is durable and rejects, with the reason in plain words, when none of it is there. */
export function openCommitQueue(options: {
  readonly replica: Replica
  readonly write: (batch: Batch) => Promise<void>
  readonly now: () => number
}): CommitQueue {
  const { replica, write, now } = options
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
    const { events, revision, verdicts } = judge(commits, replica)
    if (events.length === 0) {
      answer(verdicts)
      schedule()
      return
    }
    const time = now()
    writing = write({ events, revision, time }).then(
      () => {
        replica.apply(events, revision, time)
        finish(verdicts)
      },
      (error: unknown) => finish(verdicts.map(verdict => refuse(verdict, error))),
    )
  }

  /** The next batch is sent off before this one is answered: answering is work that the disk need not wait for. */
  function finish(verdicts: readonly Verdict[]): void {
    writing = undefined
    if (waiting.length > 0) start()
    answer(verdicts)
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
function checkOps(ops: readonly Op[]): Pending['labels'] {
  if (ops.length === 0 || ops.length > MOST_OPS) throw new TypeError(`a commit has 1 to ${MOST_OPS} ops`)
  if (new Set(ops.map(op => op.key.bucket)).size < ops.length) {
    throw new TypeError('a commit names at most one key of a bucket')
  }
  return ops.map(op => {
    if (op.type === 'delete') return undefined
    checkValue(op.value)
    return labelsOf(op.value.text)
  })
}

/** How many of the waiting commits go together: enough to share an fsync, not so much that the first waits for megabytes. */
function batchSize(waiting: readonly Pending[]): number {
  let bytes = 0
  for (const [i, { ops }] of waiting.entries()) {
    for (const op of ops) if (op.type === 'put') bytes += op.value.text.length
    if (i + 1 === MOST_COMMITS || bytes >= MOST_BYTES) return i + 1
  }
  return waiting.length
}

/** A refusal that rests on the failed batch itself says nothing that is true now; one that rests on durable state stands. */
function refuse(verdict: Verdict, error: unknown): Verdict {
  if (verdict.error !== undefined && !verdict.withinBatch) return verdict
  const reason = error instanceof StoreError ? error : new StoreError('unavailable', String(error))
  return { pending: verdict.pending, revision: 0, error: reason, withinBatch: false }
}

function answer(verdicts: readonly Verdict[]): void {
  for (const { pending, revision, error } of verdicts) {
    if (error === undefined) pending.resolve(revision)
    else pending.reject(error)
  }
}
