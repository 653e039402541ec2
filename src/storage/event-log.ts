// The events of every bucket in order, how far back they reach, and the cursors of those who follow. The replica appends and reads.
//
// An event has a position in its bucket, counted from the first ever appended. A cursor is a position and nothing
// else, so a slow watcher costs no memory: it is cut loose when history moves past it.

import { type Deletions, openDeletions } from './deletions.ts'
import { type Cursor, type Key, StoreError, type StoreEvent } from './store.ts'

/** An event is dropped only when it is older than `minAgeMs` and not among the newest `minEvents`, or for `maxBytes`. */
export type HistoryBounds = {
  readonly minAgeMs?: number
  readonly minEvents?: number
  /** How much superseded values may take, whatever their age: the bound that protects the machine. */
  readonly maxBytes?: number
}

export type EventLog = {
  readonly revision: number
  /** The newest revision whose events may be gone: what happened after it is complete. */
  readonly floor: number
  /** Continues a log that another process wrote. */
  begin(revision: number, floor: number): void
  /** `events`: those of whole commits, in order. `revision`: the last commit's. */
  append(events: readonly StoreEvent[], revision: number, time: number): void
  /** Drops history beyond the bounds, up to `limit` if given. Returns the oldest kept revision. */
  trim(now: number, limit?: number): number
  watch(bucket: string, after: number): Cursor
  /** The position of the first event of a bucket after a revision, and the events from a position on. */
  positionAfter(bucket: string, revision: number): number
  eventsFrom(bucket: string, position: number, max?: number): readonly StoreEvent[]
  /** The first deletion of a key after a revision. */
  deletionAfter(key: Key, revision: number): StoreEvent | undefined
  /** Throws 'compacted' or 'future' where history does not reach from this revision to now. */
  check(revision: number): void
}

/** `events[head]` has position `first`; what is before `head` is dropped and waits to be cleared in bulk. */
type Course = {
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
  const courses = new Map<string, Course>()
  let marks: Mark[] = []
  let firstMark = 0
  let count = 0
  let bytes = 0
  let revision = 1
  let floor = 1

  function courseOf(bucket: string): Course {
    const course = courses.get(bucket) ?? {
      events: [],
      head: 0,
      first: 0,
      deletions: openDeletions(),
      waiting: new Set(),
    }
    courses.set(bucket, course)
    return course
  }

  function check(from: number): void {
    if (from < floor) {
      throw new StoreError('compacted', `revision ${from} is too old: history begins at ${floor}`, { revision: floor })
    }
    if (from > revision) {
      throw new StoreError('future', `revision ${from} is not there yet: the newest is ${revision}`, { revision })
    }
  }

  function append(events: readonly StoreEvent[], newest: number, time: number): void {
    const touched = new Set<Course>()
    let size = 0
    for (const event of events) {
      const course = courseOf(event.key.bucket)
      course.events.push(event)
      if (event.type === 'deleted') course.deletions.add(event)
      touched.add(course)
      size += superseded(event)
    }
    marks.push({ revision: newest, time, events: events.length, bytes: size })
    count += events.length
    bytes += size
    revision = newest
    for (const course of touched) wakeAll(course)
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
    if (floor !== before) for (const course of courses.values()) drop(course, floor)
    return floor
  }

  function positionAfter(bucket: string, after: number): number {
    const course = courses.get(bucket)
    if (course === undefined) return 0
    let low = course.head
    let high = course.events.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (course.events[middle]!.revision <= after) low = middle + 1
      else high = middle
    }
    return course.first + low - course.head
  }

  function eventsFrom(bucket: string, position: number, max = Number.POSITIVE_INFINITY): readonly StoreEvent[] {
    const course = courses.get(bucket)
    if (course === undefined) return []
    const start = course.head + position - course.first
    return course.events.slice(start, Math.min(start + max, course.events.length))
  }

  function watch(bucket: string, after: number): Cursor {
    check(after)
    const course = courseOf(bucket)
    const reader: Reader = { wake: undefined }
    let position = positionAfter(bucket, after)
    let seen = after
    let closed = false
    const nextEvent = () => course.events[course.head + position - course.first]
    return {
      take(max) {
        if (closed) return []
        if (position < course.first) {
          throw new StoreError('compacted', `history begins at ${floor}, after what was read last`, { revision: floor })
        }
        const events = eventsFrom(bucket, position, max)
        position += events.length
        return events
      },
      wait(wake) {
        if (closed) return
        reader.wake = wake
        course.waiting.add(reader)
        if (position < course.first || nextEvent() !== undefined) wakeOne(course, reader)
      },
      get revision() {
        // Not the last event's own revision: that would fall back when an event follows a quiet time.
        if (position >= course.first) seen = (nextEvent()?.revision ?? revision + 1) - 1
        return seen
      },
      close() {
        closed = true
        reader.wake = undefined
        course.waiting.delete(reader)
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
    append,
    trim,
    watch,
    positionAfter,
    eventsFrom,
    deletionAfter: (key, after) => courses.get(key.bucket)?.deletions.firstAfter(key, after),
    check,
  }
}

function superseded(event: StoreEvent): number {
  const last = event.type === 'deleted' ? event.entry.text.length : 0
  return last + (event.previous?.text.length ?? 0)
}

function drop(course: Course, floor: number): void {
  const { events } = course
  const before = course.head
  for (let event = events[course.head]; event !== undefined && event.revision <= floor; event = events[course.head]) {
    if (event.type === 'deleted') course.deletions.dropOldest(event.key)
    course.head++
  }
  course.first += course.head - before
  // Clearing costs what remains, and waiting keeps dropped values in memory: an eighth is where both stay small.
  if (course.head < 64 || course.head < events.length >> 3) return
  course.events = events.slice(course.head)
  course.head = 0
}

function wakeAll(course: Course): void {
  for (const reader of course.waiting) wakeOne(course, reader)
}

/** In a microtask of its own: a reader that throws or dawdles harms neither the commit nor the other readers. */
function wakeOne(course: Course, reader: Reader): void {
  course.waiting.delete(reader)
  queueMicrotask(() => {
    const { wake } = reader
    reader.wake = undefined
    wake?.()
  })
}
