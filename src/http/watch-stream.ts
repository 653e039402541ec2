// Writes a watch to its client: one line an event, never faster than the client reads, bookmarks, and an end.

import type { Kind } from '../api/kind.ts'
import { documentOf, type Watch, type WatchEvent, watchEvent } from '../api/resources.ts'
import type { Exchange } from '../serving/exchange.ts'
import { warningHeaders } from '../serving/respond.ts'
import type { View } from './negotiate.ts'
import { partial, type TableOptions, table } from './table.ts'

export type StreamOptions = {
  readonly kind: Kind
  readonly view: View
  readonly include: TableOptions['include']
  readonly bookmarks: boolean
  /** Milliseconds after which the watch ends. */
  readonly timeout: number
  readonly now: () => number
  /** Aborted when the server shuts down. */
  readonly ending: AbortSignal
}

const bookmarkEvery = 60_000
/** A client that takes nothing for this long is cut loose. */
const patience = 30_000

export async function streamWatch(
  { response, auditId, warnings }: Exchange,
  watch: Watch,
  options: StreamOptions,
): Promise<void> {
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
  const line = lineWriter(options)
  const write = (text: Uint8Array) => response.write(text)
  const stop = () => watch.stop()
  const end = () => {
    if (options.bookmarks && !response.destroyed) write(line(watch.bookmark()))
    stop()
  }
  const timer = setTimeout(end, options.timeout).unref()
  const ticker = options.bookmarks ? setInterval(() => write(line(watch.bookmark())), bookmarkEvery).unref() : undefined
  response.on('close', stop)
  options.ending.addEventListener('abort', stop)
  try {
    for (let events = await watch.next(); events; events = await watch.next()) {
      if (response.destroyed) return
      if (!write(join(events, line)) && !(await drained(response))) return void response.destroy()
    }
    response.end()
  } finally {
    clearTimeout(timer)
    clearInterval(ticker)
    stop()
    options.ending.removeEventListener('abort', stop)
  }
}

/** How an event is written: as it is, shared by all who watch, or in the view this client asked for. */
function lineWriter({ kind, view, include, now }: StreamOptions): (event: WatchEvent) => Uint8Array {
  if (view.as === 'object') return event => event.line
  let first = true
  return event => {
    if (event.type === 'ERROR') return event.line
    const { object } = event.document
    if (view.as === 'PartialObjectMetadata')
      return watchEvent(event.type, documentOf(partial(object, view) as never, JSON.stringify)).line
    const columns = first
    first = false
    const metadata = { resourceVersion: object.metadata.resourceVersion ?? '' }
    return watchEvent(
      event.type,
      documentOf(table([object], metadata, { kind, view, include, now: now() }, columns) as never, JSON.stringify),
    ).line
  }
}

/** One write for all that came together. */
function join(events: readonly WatchEvent[], line: (event: WatchEvent) => Uint8Array): Uint8Array {
  const [only] = events
  return events.length === 1 && only ? line(only) : Buffer.concat(events.map(line))
}

function drained(response: Exchange['response']): Promise<boolean> {
  return new Promise(resolve => {
    const finish = (answer: boolean) => {
      clearTimeout(timer)
      response.removeListener('drain', ok)
      response.removeListener('close', gone)
      resolve(answer)
    }
    const ok = () => finish(true)
    const gone = () => finish(false)
    const timer = setTimeout(gone, patience).unref()
    response.once('drain', ok)
    response.once('close', gone)
  })
}
