// The SQLite engine: everything in one file. It acknowledges commits after an fsync, and reads never wait for the disk.

import { Buffer } from 'node:buffer'
import { closeSync, existsSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Batch, openCommitQueue } from '../commit-queue.ts'
import { openDataLock } from '../data-lock.ts'
import { putText } from '../entry.ts'
import type { HistoryBounds } from '../event-log.ts'
import type { ReportFailure } from '../storage.ts'
import { type Store, StoreError } from '../store.ts'
import { openWatchCache } from '../watch-cache.ts'
import { incompleteFile } from './copy.ts'
import { describeError, unusableError } from './errors.ts'
import { loadTimes, openLoader } from './load.ts'
import type { Row, Times } from './table.ts'
import { openSqliteThread, type SqliteThread, ThreadLostError } from './thread.ts'

export type SqliteOptions = {
  readonly file: string
  readonly now?: () => number
  readonly history?: HistoryBounds
  /** Interval between retries of a failing disk. */
  readonly probeMs?: number
  readonly reportFailure?: ReportFailure | undefined
  /** Starts the thread. Tests replace it to simulate rare failures. */
  readonly openThread?: typeof openSqliteThread
}

export type SqliteStore = Store & {
  /** Number of acknowledged commits and of their transactions; the difference shows the effect of group commit. */
  stats(): { readonly commits: number; readonly transactions: number }
  /** The side table of D19: its content when the store was opened, and a function to write it. */
  readonly times: { readonly loaded: ReadonlyMap<string, number>; save(times: Times): Promise<void> }
}

const COMPACT_EVERY = 1000

export async function openSqliteStore(options: SqliteOptions): Promise<SqliteStore> {
  const { file, now = Date.now, history, probeMs = 1000, reportFailure, openThread = openSqliteThread } = options
  const lock = openDataLock(dirname(file))
  const watchCache = openWatchCache(history)
  let opening: SqliteThread | undefined
  let loaded: Map<string, number>
  try {
    rejectIncomplete(file)
    // Created here and not by SQLite, so that only the owner can read it. SQLite uses the same mode for its other files.
    closeSync(openSync(file, 'a', 0o600))
    opening = await openThread({ file, settle: false })
    await opening.load(openLoader(watchCache))
    loaded = loadTimes(file)
  } catch (error) {
    await opening?.close()
    lock.close()
    throw unusableError(file, error)
  }

  let thread = opening
  let failure: string | undefined
  let probing: NodeJS.Timeout | undefined
  let closing: Promise<void> | undefined
  /** While this is set, the outcome of the last batch is unknown, and the store accepts no commits. */
  let reopening: Promise<void> | undefined
  let compacted = thread.floor
  const counts = { commits: 0, transactions: 0 }

  function note(reason: string | undefined): void {
    const isNew = (failure === undefined) !== (reason === undefined)
    failure = reason
    if (isNew) reportFailure?.(reason)
  }

  function works(): void {
    note(undefined)
    clearInterval(probing)
    probing = undefined
  }

  function fails(reason: string): void {
    if (closing !== undefined) return
    note(reason)
    probing ??= setInterval(() => void probe(), probeMs).unref()
  }

  async function probe(): Promise<void> {
    if (reopening !== undefined) return
    await thread.call({ type: 'probe' }).then(works, (error: Error) => {
      if (error instanceof ThreadLostError) reopen().catch(() => {})
    })
  }

  async function write(batch: Batch): Promise<void> {
    const { rows, slab } = rowsOf(batch)
    const append = { type: 'append', batch: { rows, slab, time: batch.time } } as const
    try {
      await thread.call(append, [slab.buffer])
    } catch (error) {
      const reason = describeError(error)
      fails(reason)
      if (error instanceof ThreadLostError) await reopen()
      // A lost thread may have written the batch. Only the file shows that.
      if (thread.revision < batch.revision) throw new StoreError('unavailable', reason)
    }
    counts.transactions++
    counts.commits += batch.revision - watchCache.revision
    works()
  }

  /** Restarts the thread until it can read the file and everything in it is on the disk. */
  function reopen(): Promise<void> {
    reopening ??= tryToOpen().finally(() => {
      reopening = undefined
    })
    return reopening
  }

  async function tryToOpen(): Promise<void> {
    while (closing === undefined) {
      try {
        thread = await openThread({ file, settle: true })
        return
      } catch (error) {
        note(describeError(error))
        await new Promise(resolve => setTimeout(resolve, probeMs))
      }
    }
    throw new StoreError('unavailable', 'the server stopped before it could confirm the write')
  }

  async function compactFile(): Promise<void> {
    compacted = watchCache.floor
    await thread.call({ type: 'compact', floor: compacted }).catch((error: Error) => {
      // Retried with the next thousand revisions, because a compaction can fail once.
      compacted = thread.floor
      if (!(error instanceof ThreadLostError)) fails(describeError(error))
    })
  }

  async function end(): Promise<void> {
    await queue.close()
    clearInterval(probing)
    await thread.close()
    lock.close()
  }

  const queue = openCommitQueue({ watchCache, now, write })
  return {
    get revision() {
      return watchCache.revision
    },
    get failure() {
      return failure
    },
    get: watchCache.get,
    last: watchCache.last,
    list: watchCache.list,
    count: watchCache.count,
    index: watchCache.index,
    watch: watchCache.watch,
    confirm: () => undefined,
    outdated: undefined,
    async commit(ops) {
      if (reopening !== undefined) throw new StoreError('unavailable', failure ?? 'the storage thread ended')
      const revision = await queue.commit(ops)
      if (watchCache.floor - compacted >= COMPACT_EVERY) void compactFile()
      return revision
    },
    async replace(items) {
      if (closing !== undefined || reopening !== undefined)
        throw new StoreError('unavailable', failure ?? 'the storage thread ended')
      const found = watchCache.replacements(items)
      const texts = found.map(({ next: { key, revision, gap, text } }) => ({ ...key, revision, gap, text }))
      await thread.call({ type: 'replace', texts }).catch((error: Error) => {
        if (error instanceof ThreadLostError) reopen().catch(() => {})
        else fails(describeError(error))
        throw new StoreError('unavailable', describeError(error))
      })
      for (const { entry, next } of found) putText(entry, next)
      return found.length
    },
    async compact(revision) {
      watchCache.trim(now(), revision)
      await compactFile()
    },
    stats: () => ({ ...counts }),
    times: { loaded, save: times => thread.call({ type: 'save', times }) },
    close() {
      closing ??= end()
      return closing
    },
  }
}

/** The texts of a batch in one buffer, which is transferred to the thread without a copy. */
function rowsOf({ events }: Batch): { rows: Row[]; slab: Uint8Array<ArrayBuffer> } {
  const rows: Row[] = []
  const size = events.reduce((sum, event) => sum + (event.type === 'deleted' ? 0 : event.entry.text.length), 0)
  const slab = Buffer.allocUnsafeSlow(size)
  let at = 0
  let slot = 0
  let last = 0
  for (const { type, revision, key, entry, previous } of events) {
    slot = revision === last ? slot + 1 : 0
    last = revision
    const { bucket, namespace, name } = key
    const deleted = type === 'deleted'
    const text = deleted ? 0 : entry.text.copy(slab, at)
    at += text
    rows.push({
      revision,
      slot,
      bucket,
      namespace,
      name,
      previous: previous?.revision ?? 0,
      gap: deleted ? 0 : entry.gap,
      text,
    })
  }
  return { rows, slab: new Uint8Array(slab.buffer) }
}

/** An empty store beside an incomplete one would look like the loss of all data. */
function rejectIncomplete(file: string): void {
  const incomplete = incompleteFile(file)
  if (existsSync(incomplete) && !existsSync(file))
    throw new Error(`a restore or migration did not complete ${incomplete}: delete this file, and run it again`)
}
