// Compare-and-swap: decides which commits of a batch succeed, and assigns their revisions and events. Runs before the write.

import { ownText } from '../api/own-text.ts'
import { type CachedEntry, cachedEntry, sortKey, withRevision } from './entry.ts'
import { type Key, type Labels, type Op, StoreError } from './store.ts'
import type { CachedEvent, WatchCache } from './watch-cache.ts'

/** A commit that waits for its result. `labels` has one entry per op. */
export type Pending = {
  readonly ops: readonly Op[]
  readonly labels: readonly Labels[]
  readonly resolve: (revision: number) => void
  readonly reject: (error: Error) => void
}

/** `withinBatch`: rejected because of an earlier commit of the same batch, so valid only once that is durable. */
export type CommitOutcome = {
  readonly pending: Pending
  readonly revision: number
  readonly error: StoreError | undefined
  readonly withinBatch: boolean
}

export type SwapResult = {
  readonly events: readonly CachedEvent[]
  readonly revision: number
  readonly outcomes: readonly CommitOutcome[]
}

export function compareAndSwap(commits: readonly Pending[], watchCache: WatchCache): SwapResult {
  const events: CachedEvent[] = []
  const outcomes: CommitOutcome[] = []
  const changed = new Map<string, CachedEntry | undefined>()
  let revision = watchCache.revision

  for (const pending of commits) {
    const found = pending.ops.map(op => {
      const id = describeKey(op.key)
      const within = changed.has(id)
      return { id, within, entry: within ? changed.get(id) : watchCache.get(op.key) }
    })
    // Checks all preconditions before any op of the commit applies, because a commit is atomic.
    const failed = pending.ops.findIndex((op, i) => refusal(op, found[i]!.entry) !== undefined)
    if (failed >= 0) {
      const { entry, within } = found[failed]!
      outcomes.push({ pending, revision: 0, error: refusal(pending.ops[failed]!, entry), withinBatch: within })
      continue
    }
    revision++
    for (const [i, op] of pending.ops.entries()) {
      if (op.type === 'check') continue
      const { id, entry } = found[i]!
      const event = eventOf(op, pending.labels[i], entry, revision)
      events.push(event)
      changed.set(id, event.type === 'deleted' ? undefined : event.entry)
    }
    outcomes.push({ pending, revision, error: undefined, withinBatch: false })
  }
  return { events, revision, outcomes }
}

function describeKey(key: Key): string {
  return `${key.bucket}\0${sortKey(key.namespace, key.name)}`
}

/** Why an op cannot apply to the current entry of its key. */
export function refusal(op: Op, entry: { readonly revision: number } | undefined): StoreError | undefined {
  const { type, key, expect } = op
  const name = `${key.bucket} ${key.namespace === '' ? '' : `${key.namespace}/`}${key.name}`
  if (entry === undefined) {
    if (type !== 'delete' && (expect === undefined || expect === 0)) return undefined
    return new StoreError('missing', `${name} does not exist`, { key })
  }
  if (expect === undefined || expect === entry.revision) return undefined
  const at = { key, revision: entry.revision }
  if (expect === 0) return new StoreError('exists', `${name} exists already`, at)
  return new StoreError('conflict', `${name} is at revision ${entry.revision}, not ${expect}`, at)
}

type Change = Exclude<Op, { readonly type: 'check' }>

function eventOf(op: Change, labels: Labels, previous: CachedEntry | undefined, revision: number): CachedEvent {
  // Reuses the existing key object, so that frequent updates do not allocate new ones.
  const { bucket, namespace, name } = op.key
  const key = previous?.key ?? { bucket, namespace: ownText(namespace), name: ownText(name) }
  if (op.type === 'put') {
    const entry = cachedEntry(key, revision, op.value, labels)
    return { type: previous === undefined ? 'created' : 'updated', revision, key, entry, previous }
  }
  if (previous === undefined) throw new Error('bug: a delete of a missing object passed its precondition')
  return { type: 'deleted', revision, key, entry: withRevision(previous, revision), previous }
}
