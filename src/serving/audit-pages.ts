// Merges the audit logs of all replicas into pages, newest first.

import { type AuditPage, type AuditPosition, type AuditSearch, auditUnreadable } from '../api/audit-query.ts'
import { ApiError, expired } from '../api/errors.ts'
import type { Document } from '../api/resources.ts'
import { pause } from '../api/time-slices.ts'
import type { Scan, Scanned } from './audit-scan.ts'

export type ScanLog = (search: Scan) => Promise<Scanned>

/** The audit log of one replica. `name`: its URL, for warnings. */
export type AuditSource = { readonly id: string; readonly name: string; readonly scan: ScanLog }

/** The bounds of one page: bytes of all logs together, bytes of the shown events, and logs. */
const [maxScannedBytes, maxShownBytes, maxSources] = [16 * 1024 * 1024, 512 * 1024, 32]

type Match = Extract<Scanned, { matches: unknown }>['matches'][number]
type Shown = { readonly document: Document; readonly time: string; readonly at: AuditPosition }

/** The state of one log during a search. */
type Reading = {
  readonly source: AuditSource
  /** The newest shown event that is not on the page yet. */
  head: Shown | undefined
  /** The rest of the part that was read last, oldest first. */
  rest: Match[]
  /** The start of the next part, and whether there is one. */
  next: AuditPosition | undefined
  hasNext: boolean
  /** The start of the next page; undefined: the log has no older events. */
  resume: AuditPosition | undefined
  bytes: number
  failure: string | undefined
}

/**
 * Ends at the last shown event, or where the part of the logs ends that one page reads. If the caller may not see all events,
 * nothing else about the page may depend on hidden ones: parts end at fixed places, and only shown events are compared.
 */
export async function pageOf(search: AuditSearch, sources: readonly AuditSource[]): Promise<AuditPage> {
  const { limit } = search
  const { readings, missing, warnings } = begin(search, sources)
  const items: Document[] = []
  let shownBytes = 0
  const bounds = { search, maxBytes: maxScannedBytes / readings.length, left: () => limit - items.length }
  await Promise.all(readings.map(reading => advance(reading, bounds)))
  while (items.length < limit && shownBytes < maxShownBytes) {
    // A log without a shown event in its share of the page may have one that is newer than those of the others.
    if (readings.some(({ head, hasNext }) => !head && hasNext)) break
    const newest = newestOf(readings)
    if (!newest?.head) break
    const { document, at } = newest.head
    items.push(document)
    shownBytes += document.json.length
    newest.head = undefined
    newest.resume = at
    if (items.length < limit && shownBytes < maxShownBytes) await advance(newest, bounds)
  }
  const failed = readings.filter(({ failure }) => failure !== undefined)
  const own = failed.find(({ source }) => source === sources[0])
  if (own && failed.length === readings.length) throw auditUnreadable(`audit events cannot be read: ${own.failure}`)
  for (const { source, failure = '' } of failed) {
    missing.add(source.id)
    warnings.push(warningOf(search, source, failure))
  }
  const next = new Map<string, AuditPosition | 'missing'>()
  for (const { source, resume, failure } of readings) if (resume && failure === undefined) next.set(source.id, resume)
  if (next.size === 0) return { items, warnings }
  for (const id of missing) next.set(id, 'missing')
  return { items, warnings, next }
}

/** A log that could not be read is left out of the rest of a search. Otherwise its events would come too late. */
function begin(search: AuditSearch, sources: readonly AuditSource[]) {
  const missing = new Set<string>()
  const warnings: string[] = []
  const leaveOut = (source: AuditSource, reason: string) => {
    missing.add(source.id)
    warnings.push(warningOf(search, source, reason))
  }
  if (!search.from) {
    const left = sources.length - maxSources
    if (left > 0)
      warnings.push(`a search reads the audit logs of ${maxSources} replicas, so those of ${left} are missing`)
    return { readings: sources.slice(0, maxSources).map(source => readingOf(source, undefined)), missing, warnings }
  }
  const readings: Reading[] = []
  for (const [id, position] of search.from) {
    const source = sources.find(one => one.id === id) ?? { id, name: id, scan: unknownReplica }
    if (position === 'missing') leaveOut(source, 'it could not be read when the search began')
    else readings.push(readingOf(source, position))
  }
  return { readings, missing, warnings }
}

const unknownReplica: ScanLog = async () => ({ unreadable: 'the replica no longer exists' })

const readingOf = (source: AuditSource, from: AuditPosition | undefined): Reading => ({
  source,
  head: undefined,
  rest: [],
  next: from,
  hasNext: true,
  resume: from,
  bytes: 0,
  failure: undefined,
})

/** Addresses of replicas and reasons are for administrators. */
const warningOf = ({ actor }: AuditSearch, { id, name }: AuditSource, reason: string) =>
  actor
    ? `the audit log of replica ${id} could not be read, so its events are missing`
    : `the audit log of replica ${name} could not be read, so its events are missing: ${reason}`

function newestOf(readings: readonly Reading[]): Reading | undefined {
  let newest: Reading | undefined
  for (const one of readings) if (one.head && !(newest?.head && newest.head.time >= one.head.time)) newest = one
  return newest
}

type Bounds = { readonly search: AuditSearch; readonly maxBytes: number; readonly left: () => number }

/** Reads until there is a shown event, the log ends, or its share of the page is read. */
async function advance(reading: Reading, bounds: Bounds): Promise<void> {
  while (!(await hasHead(reading, bounds.search))) {
    reading.resume = reading.hasNext ? reading.next : undefined
    if (!reading.hasNext || (reading.bytes > 0 && reading.bytes >= bounds.maxBytes)) return
    const part = await readPart(reading, bounds)
    if (!part) return
    // If this part has a shown event, the next page may begin with it.
    reading.resume = reading.next ?? part.start
    reading.bytes += part.bytes
    reading.rest = part.matches.toReversed()
    reading.next = part.next
    reading.hasNext = part.next !== undefined
  }
}

async function hasHead(reading: Reading, search: AuditSearch): Promise<boolean> {
  for (let found = reading.rest.pop(); found; found = reading.rest.pop()) {
    await pause()
    const document = search.show(found)
    if (!document) continue
    reading.head = { document, time: found.event.stageTimestamp ?? '', at: found.at }
    return true
  }
  return false
}

async function readPart(reading: Reading, { search, left }: Bounds) {
  const { query, actor, from } = search
  const { source, next } = reading
  const part = await source.scan({ query, actor, from: next, ...(actor ? {} : { limit: left() }) }).catch(unreadable)
  if ('matches' in part) return part
  reading.hasNext = false
  if ('unreadable' in part) reading.failure = part.unreadable
  // A rotation may have deleted the rest of the log meanwhile.
  else if (reading.bytes > 0 || !from) reading.resume = undefined
  else throw expired('The provided continue parameter refers to an audit log file that no longer exists; search again')
  return undefined
}

/** Too many searches at another replica are the error of this one, too: the client tries again. */
function unreadable(error: unknown): Scanned {
  if (error instanceof ApiError && error.code === 429) throw error
  return { unreadable: (error as Error).message }
}
