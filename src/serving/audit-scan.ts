// Scans an audit log backwards for matching events, a bounded part at a time. Runs in audit-search-worker.ts.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import {
  type AuditField,
  type AuditLine,
  type AuditPosition,
  type AuditQuery,
  type AuditSearch,
  auditEventName,
  type FoundEvent,
  isActionOf,
  matchesAudit,
} from '../api/audit-query.ts'
import { auditId, shortened } from './audit-feed.ts'
import { type LogFile, logFilesOf } from './audit-files.ts'

const chunkBytes = 256 * 1024
/** A longer line is skipped: request and response bodies are limited to less. */
const maxLine = 16 * 1024 * 1024
/** Events are written in the order of their times, but for clock changes and events that wait for a request body. */
const slack = 10 * 60_000
const newline = 10

/** `limit`: stops after so many matches. Without it, the part ends at a place that does not depend on matches. */
export type Scan = Pick<AuditSearch, 'query' | 'actor'> & {
  readonly from?: AuditPosition | undefined
  readonly limit?: number | undefined
}

/** `at`: where the search continues after this event. */
type Match = FoundEvent & { readonly at: AuditPosition }

/**
 * `bytes`: how much of the log was read. `start`: where this part begins. `next`: where the search continues; undefined: the log
 * has no older events.
 */
type Part = {
  readonly matches: readonly Match[]
  readonly bytes: number
  readonly start?: AuditPosition | undefined
  readonly next?: AuditPosition
}

/** `expired`: the file of the position no longer exists. */
export type Scanned = Part | { readonly expired: true } | { readonly unreadable: string }

/** Scans at least one line and about as much as one chunk. */
export function scan(file: string, search: Scan): Scanned {
  for (let attempt = 0; ; attempt++)
    try {
      return scanFiles(file, search)
    } catch (error) {
      if (!(error instanceof FileMoved) || attempt >= 3) throw error
    }
}

/** The log was rotated between the listing and the reading of its files. */
class FileMoved extends Error {}

function scanFiles(file: string, search: Scan): Scanned {
  const files = logFilesOf(file)
  const { from } = search
  const first = from ? files.findIndex(({ id, size }) => id === from.file && from.at <= size) : 0
  if (first === -1) return { expired: true }
  const part = openPart(search)
  for (const [index, log] of files.entries()) {
    if (index < first) continue
    const older = files[index + 1]
    if (isBefore(log, search.query.from)) return part.ended()
    const isStart = from !== undefined && index === first
    if (!isStart && older && isAfter(older, search.query.to)) continue
    const end = scanFile(log, isStart ? from.at : undefined, search.query, part)
    if (end === 'too old') return part.ended()
    if (end > 0) return part.ended({ file: log.id, at: end })
    if (part.isFull() && older) return part.ended(positionAtEnd(older))
  }
  return part.ended()
}

const positionAtEnd = ({ id, size }: LogFile): AuditPosition => ({ file: id, at: size })
const isBefore = ({ until }: LogFile, from: string | undefined) =>
  from !== undefined && until < Date.parse(from) - slack
/** Whether all events after this older file are later than `to`. */
const isAfter = ({ until }: LogFile, to: string | undefined) => to !== undefined && until > Date.parse(to) + slack

type OpenPart = {
  readonly begin: (at: AuditPosition) => void
  readonly add: (line: Buffer, at: AuditPosition) => void
  readonly hasEnough: () => boolean
  readonly isFull: () => boolean
  readonly scanned: (bytes: number) => void
  readonly ended: (next?: AuditPosition) => Part
}

function openPart({ query, actor, limit = Number.POSITIVE_INFINITY }: Scan): OpenPart {
  const matches: Match[] = []
  const needles = needlesOf(query)
  const ofActor = actor && [Buffer.from(`"username":${JSON.stringify(actor.username)}`), Buffer.from('"uid":"')]
  let bytes = 0
  let start: AuditPosition | undefined
  const hasEnough = () => matches.length >= limit
  return {
    begin: at => {
      start ??= at
    },
    add(line, at) {
      // Most lines do not match. Searching their bytes is much cheaper than parsing them.
      if (!needles.every(needle => line.includes(needle))) return
      if (ofActor && !ofActor.some(needle => line.includes(needle))) return
      const event = parseLine(line)
      if (!event) return
      const id = auditId(event)
      if (!matchesAudit(query, event, () => auditEventName(id))) return
      if (actor && !isActionOf(actor, event) && !event.objectRef?.uid) return
      matches.push({ id, ...shortened(event, line.length), at })
    },
    hasEnough,
    isFull: () => hasEnough() || bytes >= chunkBytes,
    scanned: more => {
      bytes += more
    },
    ended: next => ({ matches, bytes, start, ...(next ? { next } : {}) }),
  }
}

const keys: { readonly [field in AuditField]?: string } = {
  user: 'username',
  verb: 'verb',
  namespace: 'namespace',
  name: 'name',
  uid: 'uid',
}

/** Bytes that every matching line has. */
function needlesOf({ terms }: AuditQuery): Buffer[] {
  return terms.flatMap(({ field, op, value }) => {
    const key = keys[field]
    return op === '=' && key !== undefined && value ? [Buffer.from(`"${key}":${JSON.stringify(value)}`)] : []
  })
}

function parseLine(line: Buffer): AuditLine | undefined {
  try {
    const value: unknown = JSON.parse(line.toString())
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** The start of the last scanned line, 0 at the start of the file. `too old`: the rest of the log is before `from`. */
function scanFile(log: LogFile, from: number | undefined, query: AuditQuery, part: OpenPart): number | 'too old' {
  const handle = openLog(log)
  try {
    const end = from ?? (query.to === undefined ? log.size : seek(handle, log.size, query.to))
    part.begin({ file: log.id, at: end })
    for (const chunk of linesBackwards(handle, end, part.scanned)) {
      for (const { start, line } of chunk) {
        part.add(line, { file: log.id, at: start })
        if (part.hasEnough()) return start
      }
      const last = chunk.at(-1)
      if (isTooOld(last?.line, query.from)) return 'too old'
      if (last && part.isFull()) return last.start
    }
    return 0
  } finally {
    closeSync(handle)
  }
}

function openLog({ path, id }: LogFile): number {
  let handle: number
  try {
    handle = openSync(path, 'r')
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? new FileMoved(path) : error
  }
  const { dev, ino } = fstatSync(handle)
  if (`${dev}:${ino}` === id) return handle
  closeSync(handle)
  throw new FileMoved(path)
}

function isTooOld(line: Buffer | undefined, from: string | undefined): boolean {
  if (line === undefined || from === undefined) return false
  const time = parseLine(line)?.stageTimestamp
  return time !== undefined && Date.parse(time) < Date.parse(from) - slack
}

type Line = { readonly start: number; readonly line: Buffer }

/** Lines before `end`, the last one first, in groups. Bytes after the last newline are a line that is being written. */
function* linesBackwards(handle: number, end: number, scanned: (bytes: number) => void): Generator<Line[]> {
  let position = end
  let rest: Buffer | undefined
  while (position > 0) {
    const size = Math.min(chunkBytes, position)
    position -= size
    const chunk = Buffer.allocUnsafe(size)
    if (readSync(handle, chunk, 0, size, position) < size) throw new FileMoved('the file became shorter')
    scanned(size)
    const data: Buffer = rest ? Buffer.concat([chunk, rest]) : chunk
    // The first chunk may end within a line.
    let stop = rest ? data.length : data.lastIndexOf(newline) + 1
    const lines: Line[] = []
    for (let at = before(data, stop); at >= 0; at = before(data, stop)) {
      lines.push({ start: position + at + 1, line: data.subarray(at + 1, stop - 1) })
      stop = at + 1
    }
    if (position === 0 && stop > 0) lines.push({ start: 0, line: data.subarray(0, stop - 1) })
    rest = stop > maxLine ? Buffer.from('\n') : data.subarray(0, stop)
    if (lines.length) yield lines
  }
}

/** The newline before the line that ends at `stop`; -1: none. */
const before = (data: Buffer, stop: number) => (stop < 2 ? -1 : data.lastIndexOf(newline, stop - 2))

/** The end of the last line that is not later than `to`, or a later place: by binary search. */
function seek(handle: number, size: number, to: string): number {
  const latest = Date.parse(to) + slack
  let [low, high] = [0, size]
  while (high - low > chunkBytes) {
    const middle = Math.floor((low + high) / 2)
    const next = lineAfter(handle, middle, high)
    const time = next && parseLine(next.line)?.stageTimestamp
    if (next && time !== undefined && Date.parse(time) > latest) high = next.start
    else low = middle
  }
  return high
}

/** The first whole line after a byte, if it is near. */
function lineAfter(handle: number, from: number, end: number): Line | undefined {
  const chunk = Buffer.allocUnsafe(Math.min(4 * chunkBytes, end - from))
  const read = readSync(handle, chunk, 0, chunk.length, from)
  const first = chunk.subarray(0, read).indexOf(newline)
  const second = first === -1 ? -1 : chunk.subarray(0, read).indexOf(newline, first + 1)
  return second === -1 ? undefined : { start: from + first + 1, line: chunk.subarray(first + 1, second) }
}
