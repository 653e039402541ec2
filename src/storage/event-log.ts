// The event log: the events of each bucket in order, their limits, and the cursors of watchers.
//
// An event has a position in its bucket, counted from the first event ever. A cursor is only a position, so a slow watcher uses no memory.
// Its watch ends when the log drops events it has not read.

import { type Deletions, openDeletions } from './deletions.ts'
import { type Cursor, type Key, StoreError, type StoreEvent } from './store.ts'

/** An event is dropped only when it is older than `minAgeMs` and not among the newest `minEvents`, or for `maxBytes`. */
export type HistoryBounds = {
  readonly minAgeMs?: number
  readonly minEvents?: number
  /** Maximum size of superseded values, regardless of their age. This bound protects the machine. */
  readonly maxBytes?: number
}

export type EventLog = {
  readonly revision: number
  /** The newest revision whose events may be missing. Events after it are complete. */
  readonly floor: number
  /** Continues a log that another process wrote. */
  begin(revision: number, floor: number): void
  /** Drops all events: history begins at this revision. All cursors end with 'compacted'. */
  restart(revision: number): void
  /** `events`: of whole commits, in order. `revision`: of the last commit. */
  append(events: readonly StoreEvent[], revision: number, time: number): void
  /** Drops history beyond the bounds, up to `limit` if given. Returns the oldest kept revision. */
  trim(now: number, limit?: number): number
  watch(bucket: string, after: number): Cursor
  /** The position of the first event of a bucket after a revision, and the events from a position on. */
  positionAfter(bucket: string, revision: number): number
  eventsFrom(bucket: string, position: number, max?: number): readonly StoreEvent[]
  /** The first deletion of a key after a revision. */
  deletionAfter(key: Key, revision: number): StoreEvent | undefined
  /** Throws 'compacted' or 'future' if the history from this revision to now is not available. */
  check(revision: number): void
}

/** `events[head]` has position `first`. Events before `head` are dropped, and removed in bulk later. */
type BucketLog = {
  events: StoreEvent[]
  head: number
  first: number
  readonly deletions: Deletions
  readonly waiting: Set<Reader>
}
type Reader = { wake: (() => void) | undefined }
/** Events that were appended together are dropped together, so that no revision is incomplete. */
type Mark = { readonly revision: number; readonly time: number; readonly events: number; readonly bytes: number }

export function openEventLog(bounds: HistoryBounds = {}): EventLog {
  const { minAgeMs = 600_000, minEvents = 10_000, maxBytes = 512 * 2 ** 20 } = bounds
  const bucketLogs = new Map<string, BucketLog>()
  let marks: Mark[] = []
  let firstMark = 0
  let count = 0
  let bytes = 0
  let revision = 1
  let floor = 1

  function bucketLogOf(bucket: string): BucketLog {
    const bucketLog = bucketLogs.get(bucket) ?? {
      events: [],
      head: 0,
      first: 0,
      deletions: openDeletions(),
      waiting: new Set(),
    }
    bucketLogs.set(bucket, bucketLog)
    return bucketLog
  }

  function check(from: number): void {
    if (from < floor) {
      throw new StoreError('compacted', `revision ${from} is too old: history begins at ${floor}`, { revision: floor })
    }
    if (from > revision) {
      throw new StoreError('future', `revision ${from} does not exist yet: the newest is ${revision}`, { revision })
    }
  }

  function append(events: readonly StoreEvent[], newest: number, time: number): void {
    revision = newest
    if (events.length === 0) return
    const touched = new Set<BucketLog>()
    let size = 0
    for (const event of events) {
      const bucketLog = bucketLogOf(event.key.bucket)
      bucketLog.events.push(event)
      if (event.type === 'deleted') bucketLog.deletions.add(event)
      touched.add(bucketLog)
      size += superseded(event)
    }
    marks.push({ revision: newest, time, events: events.length, bytes: size })
    count += events.length
    bytes += size
    for (const bucketLog of touched) wakeAll(bucketLog)
  }

  function trim(now: number, limit = revision): number {
    const before = floor
    for (let mark = marks[firstMark]; mark !== undefined && mark.revision <= limit; mark = marks[firstMark]) {
      const old = now - mark.time >= minAgeMs && count - mark.events >= minEvents
      if (!old && bytes <= maxBytes) break
      firstMark++
      count -= mark.events
      bytes -= mark.bytes
      floor = mark.revision
    }
    if (firstMark > 1024 && firstMark > marks.length >> 1) {
      marks = marks.slice(firstMark)
      firstMark = 0
    }
    if (floor !== before) for (const bucketLog of bucketLogs.values()) drop(bucketLog, floor)
    return floor
  }

  function positionAfter(bucket: string, after: number): number {
    const bucketLog = bucketLogs.get(bucket)
    if (bucketLog === undefined) return 0
    let low = bucketLog.head
    let high = bucketLog.events.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (bucketLog.events[middle]!.revision <= after) low = middle + 1
      else high = middle
    }
    return bucketLog.first + low - bucketLog.head
  }

  function eventsFrom(bucket: string, position: number, max = Number.POSITIVE_INFINITY): readonly StoreEvent[] {
    const bucketLog = bucketLogs.get(bucket)
    if (bucketLog === undefined) return []
    const start = bucketLog.head + position - bucketLog.first
    return bucketLog.events.slice(start, Math.min(start + max, bucketLog.events.length))
  }

  function watch(bucket: string, after: number): Cursor {
    check(after)
    const bucketLog = bucketLogOf(bucket)
    const reader: Reader = { wake: undefined }
    let position = positionAfter(bucket, after)
    let seen = after
    let closed = false
    const nextEvent = () => bucketLog.events[bucketLog.head + position - bucketLog.first]
    return {
      take(max) {
        if (closed) return []
        if (position < bucketLog.first) {
          throw new StoreError(
            'compacted',
            `history begins at revision ${floor}, after the last revision that was read`,
            { revision: floor },
          )
        }
        const events = eventsFrom(bucket, position, max)
        position += events.length
        return events
      },
      wait(wake) {
        if (closed) return
        reader.wake = wake
        bucketLog.waiting.add(reader)
        if (position < bucketLog.first || nextEvent() !== undefined) wakeOne(bucketLog, reader)
      },
      get revision() {
        // Not the revision of the last event: it would go back when an event follows a quiet period.
        if (position >= bucketLog.first) seen = (nextEvent()?.revision ?? revision + 1) - 1
        return seen
      },
      close() {
        closed = true
        reader.wake = undefined
        bucketLog.waiting.delete(reader)
      },
    }
  }

  return {
    get revision() {
      return revision
    },
    get floor() {
      return floor
    },
    begin(newest, oldest) {
      revision = newest
      floor = oldest
    },
    restart(newest) {
      marks = []
      firstMark = count = bytes = 0
      revision = floor = newest
      for (const bucketLog of bucketLogs.values()) forgetAll(bucketLog)
    },
    append,
    trim,
    watch,
    positionAfter,
    eventsFrom,
    deletionAfter: (key, after) => bucketLogs.get(key.bucket)?.deletions.firstAfter(key, after),
    check,
  }
}

function superseded(event: StoreEvent): number {
  const last = event.type === 'deleted' ? event.entry.text.length : 0
  return last + (event.previous?.text.length ?? 0)
}

function drop(bucketLog: BucketLog, floor: number): void {
  const { events } = bucketLog
  const before = bucketLog.head
  for (
    let event = events[bucketLog.head];
    event !== undefined && event.revision <= floor;
    event = events[bucketLog.head]
  ) {
    if (event.type === 'deleted') bucketLog.deletions.dropOldest(event.key)
    bucketLog.head++
  }
  bucketLog.first += bucketLog.head - before
  // Clearing costs time in proportion to the rest, and waiting keeps dropped values in memory. At an eighth, both stay small.
  if (bucketLog.head < 64 || bucketLog.head < events.length >> 3) return
  bucketLog.events = events.slice(bucketLog.head)
  bucketLog.head = 0
}

/** Positions skip one number, so that cursors that had read everything notice it, too. */
function forgetAll(bucketLog: BucketLog): void {
  bucketLog.first += bucketLog.events.length - bucketLog.head + 1
  bucketLog.events = []
  bucketLog.head = 0
  bucketLog.deletions.clear()
  wakeAll(bucketLog)
}

function wakeAll(bucketLog: BucketLog): void {
  for (const reader of bucketLog.waiting) wakeOne(bucketLog, reader)
}

/** In a separate microtask: a reader that throws or is slow must not affect the commit or other readers. */
function wakeOne(bucketLog: BucketLog, reader: Reader): void {
  bucketLog.waiting.delete(reader)
  queueMicrotask(() => {
    const { wake } = reader
    reader.wake = undefined
    wake?.()
  })
}
