// Buffers the most recent audit events, for watches.

import { createHash } from 'node:crypto'
import type { AuditFeed, AuditLine, FoundEvent } from '../api/audit-query.ts'

const maxEvents = 1000
const maxBytes = 2 * 1024 * 1024
/** Larger events are shown without bodies. */
const maxEventBytes = 64 * 1024

/** Text is one object for the garbage collector, an event is dozens. */
type Buffered = {
  readonly position: number
  readonly line: string
  readonly isTruncated: boolean
  /** Computed when somebody watches. */
  found?: FoundEvent
}

export type WritableFeed = AuditFeed & { push(event: AuditLine, line: string): void }

/** Uses only fields that every reader of the event sees, so that the id reveals nothing else. */
export function auditId({ auditID, stage, stageTimestamp, verb }: AuditLine): string {
  const text = JSON.stringify([auditID, stage, stageTimestamp, verb])
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** Large bodies would make a page or the buffer too large. */
export function shortened(event: AuditLine, bytes: number): Pick<FoundEvent, 'event' | 'truncated'> {
  if (bytes <= maxEventBytes) return { event }
  const { requestObject: _, responseObject: __, ...rest } = event
  return { event: rest, truncated: true }
}

export function openAuditFeed(now: () => number): WritableFeed {
  // Microseconds: fewer events than that come per second, so positions grow across restarts.
  let position = Math.floor(now()) * 1000
  const buffer: Buffered[] = []
  let bytesHeld = 0
  let start = position
  let waiting = new Set<() => void>()
  return {
    get position() {
      return position
    },
    get start() {
      return start
    },
    push(event, whole) {
      const { event: kept, truncated: isTruncated = false } = shortened(event, whole.length)
      const line = isTruncated ? JSON.stringify(kept) : whole
      buffer.push({ position: ++position, line, isTruncated })
      bytesHeld += line.length
      while (buffer.length > maxEvents || bytesHeld > maxBytes) {
        const gone = buffer.shift() as Buffered
        bytesHeld -= gone.line.length
        start = gone.position
      }
      if (waiting.size === 0) return
      const called = waiting
      waiting = new Set()
      for (const callback of called) callback()
    },
    after(from, max) {
      if (from < start || from > position) return undefined
      const first = buffer.length - (position - from)
      return buffer.slice(first, first + max).map(one => {
        one.found ??= foundIn(one)
        return { ...one.found, position: one.position }
      })
    },
    wait(callback) {
      waiting.add(callback)
      return () => void waiting.delete(callback)
    },
  }
}

function foundIn({ line, isTruncated }: Buffered): FoundEvent {
  const event = JSON.parse(line) as AuditLine
  return { id: auditId(event), event, ...(isTruncated ? { truncated: true } : {}) }
}
