// Writes a watch to its client: one line an event, never faster than the client reads, bookmarks, and an end.

import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { type Document, documentOf, type Watch, type WatchEvent, watchEvent } from '../api/resources.ts'
import { abortResponse } from '../serving/abort-response.ts'
import type { Exchange } from '../serving/exchange.ts'
import { warningHeaders } from '../serving/respond.ts'
import type { View } from './negotiate.ts'
import { partial, type TableOptions, table } from './table.ts'

export type StreamOptions = {
  readonly kind: Kind
  readonly view: View
  readonly include: TableOptions['include']
  /** Removes metadata that the scope of the caller does not allow, from views other than whole objects. */
  readonly limit?: (object: Resource) => Resource
  /** Called for every object that is sent with its data. */
  readonly note?: ((document: Document) => void) | undefined
  readonly bookmarks: boolean
  /** Whether the client may still see events; absent: always. */
  readonly isAllowed?: () => boolean
  /** Milliseconds after which the watch ends. */
  readonly timeout: number
  readonly now: () => number
  readonly lastActivity: TableOptions['lastActivity']
  /** How many watches are open, of everyone together. */
  readonly crowd: () => number
  /** Milliseconds after which a client that takes nothing is cut loose. */
  readonly patience?: number
  /** Aborted when the server shuts down. */
  readonly ending: AbortSignal
}

const bookmarkEvery = 60_000
const defaultPatience = 30_000
/** As much is written before the client has to have taken it: what nobody reads must not pile up. */
const chunkSize = 1024 * 1024
/** Approximate milliseconds to write to one watch. Each watch pauses on its own schedule, to spread the load on readers. */
const msPerWatch = 0.05
const maxDelay = 50

export async function streamWatch(exchange: Exchange, watch: Watch, options: StreamOptions): Promise<void> {
  const { response, auditId, warnings } = exchange
  response.writeHead(200, {
    'Audit-Id': auditId,
    'Cache-Control': 'no-cache, private',
    'Content-Type':
      options.view.as === 'object'
        ? 'application/json'
        : `application/json;as=${options.view.as};v=${options.view.version};g=meta.k8s.io`,
    ...(warnings.size ? { Warning: warningHeaders(warnings) } : {}),
  })
  response.flushHeaders()
  // Node would frame the chunk again for each watch and send it in four pieces (nodejs/performance#57). Watches share the framed bytes.
  const isChunked = response.chunkedEncoding === true
  if (isChunked) response.chunkedEncoding = false
  const line = noting(lineWriter(options), options.note)
  const output = outputOf(exchange, options.patience ?? defaultPatience)
  // A bookmark says that everything up to it was sent: not while something is still on its way.
  let writing = false
  const bookmark = () => {
    if (options.bookmarks && !writing && !exchange.closed) response.write(join([line(watch.bookmark())], isChunked))
  }
  const stop = () => watch.stop()
  const end = () => {
    bookmark()
    stop()
  }
  const timer = setTimeout(end, options.timeout).unref()
  const ticker = options.bookmarks ? setInterval(bookmark, bookmarkEvery).unref() : undefined
  exchange.onClosed(stop)
  options.ending.addEventListener('abort', stop)
  try {
    for (let events = await watch.next(); events; events = await watch.next()) {
      if (options.isAllowed && !options.isAllowed()) break
      writing = true
      for (const lines of batches(events, line))
        if (!(await output(join(lines, isChunked)))) return void abortResponse(response)
      writing = false
      // Other watches are written to meanwhile. Events that arrive until this watch has its turn again leave in one write:
      // otherwise many watches on a busy kind would cost one write per event each.
      const delay = Math.min(Math.floor(options.crowd() * msPerWatch), maxDelay)
      if (delay > 0) await new Promise(resolve => setTimeout(resolve, delay))
    }
    if (isChunked) response.chunkedEncoding = true // for the chunk that says there are no more
    response.end()
  } finally {
    clearTimeout(timer)
    clearInterval(ticker)
    stop()
    options.ending.removeEventListener('abort', stop)
  }
}

/** How an event is written: as it is, shared by all who watch, or in the view this client asked for. */
function lineWriter({
  kind,
  view,
  include,
  limit,
  now,
  lastActivity,
}: StreamOptions): (event: WatchEvent) => Uint8Array {
  if (view.as === 'object') return event => event.line
  let first = true
  return event => {
    if (event.type === 'ERROR') return event.line
    const object = limit?.(event.document.object) ?? event.document.object
    if (view.as === 'PartialObjectMetadata')
      return watchEvent(event.type, documentOf(partial(object, kind, view) as never, JSON.stringify)).line
    const columns = first
    first = false
    const metadata = { resourceVersion: object.metadata.resourceVersion ?? '' }
    return watchEvent(
      event.type,
      documentOf(
        table([object], metadata, { kind, view, include, now: now(), lastActivity }, columns) as never,
        JSON.stringify,
      ),
    ).line
  }
}

function noting(line: (event: WatchEvent) => Uint8Array, note: StreamOptions['note']): typeof line {
  if (!note) return line
  return event => {
    if (event.type === 'ADDED' || event.type === 'MODIFIED') note(event.document)
    return line(event)
  }
}

/** One write for events that arrived together, up to a limit. Each line is encoded when needed. */
function* batches(events: readonly WatchEvent[], line: (event: WatchEvent) => Uint8Array): Generator<Uint8Array[]> {
  let lines: Uint8Array[] = []
  let size = 0
  for (const event of events) {
    const text = line(event)
    if (size > 0 && size + text.length > chunkSize) {
      yield lines
      lines = []
      size = 0
    }
    lines.push(text)
    size += text.length
  }
  if (size > 0) yield lines
}

type Joined = { readonly lines: readonly Uint8Array[]; readonly isChunked: boolean; readonly bytes: Uint8Array }
let last: Joined = { lines: [], isChunked: false, bytes: new Uint8Array() }

/** Many watches send the same events at the same time, so the joined bytes are shared. */
function join(lines: readonly Uint8Array[], isChunked: boolean): Uint8Array {
  const isSame =
    isChunked === last.isChunked &&
    lines.length === last.lines.length &&
    lines.every((line, index) => line === last.lines[index])
  if (!isSame) last = { lines, isChunked, bytes: Buffer.concat(isChunked ? framed(lines) : lines) }
  return last.bytes
}

const lineEnd = Buffer.from('\r\n')

/** As one chunk of HTTP/1.1: its length in hexadecimal before it, and line ends. */
function framed(lines: readonly Uint8Array[]): Uint8Array[] {
  const size = lines.reduce((sum, { length }) => sum + length, 0)
  return [Buffer.from(`${size.toString(16)}\r\n`), ...lines, lineEnd]
}

/** Writes, and waits until the client has taken it; false: it is gone, or took nothing for too long. */
function outputOf(exchange: Exchange, patience: number): (chunk: Uint8Array) => Promise<boolean> {
  const { response } = exchange
  let settle: (taken: boolean) => void = () => {}
  exchange.onClosed(() => settle(false))
  response.on('drain', () => settle(true))
  return chunk => {
    if (exchange.closed) return Promise.resolve(false)
    if (response.write(chunk)) return Promise.resolve(true)
    return new Promise(resolve => {
      const timer = setTimeout(() => resolve(false), patience).unref()
      settle = taken => {
        clearTimeout(timer)
        resolve(taken)
      }
    })
  }
}
