// Reads the events of a watch response line by line, across chunk boundaries.

import { internal, type Status } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type Resource } from '../api/object.ts'
import { documentOf, statusDocument, type Watch, type WatchEvent, watchEvent } from '../api/resources.ts'

/** Larger than any object (D7). Limits the memory that a broken server can use. */
const longestLine = 8 * 1024 * 1024
const newline = 0x0a

export type ReadWatchOptions = {
  readonly kind: Kind
  /** The start revision, for bookmarks before the first event. */
  readonly from: string
  /** Aborts the request. */
  readonly abort: () => void
  readonly longestLine?: number
}

/** A lost connection ends the watch like a normal end: the caller resumes from the last version. */
export function readWatch(body: ReadableStream<Uint8Array> | null, options: ReadWatchOptions): Watch {
  const { kind, abort } = options
  const reader = body?.getReader()
  const lines = splitLines(options.longestLine ?? longestLine)
  let version = options.from
  let stopped = reader === undefined

  const stop = () => {
    if (stopped) return
    stopped = true
    abort()
    void reader?.cancel().catch(() => {})
  }

  /** ERROR is always the last event, because later data cannot be trusted. */
  const failed = (message: string): WatchEvent => {
    stop()
    return watchEvent('ERROR', statusDocument({ ...internal().status, message }))
  }

  const receive = (chunk: Uint8Array): WatchEvent[] => {
    const events: WatchEvent[] = []
    const { whole, tooLong } = lines(chunk)
    for (const line of whole) {
      const event = readEvent(line)
      if (!event) return [...events, failed('the watch sent a line that is not an event')]
      version = event.document.object.metadata?.resourceVersion ?? version
      events.push(event)
    }
    return tooLong ? [...events, failed('the watch sent a line that is too long')] : events
  }

  return {
    async next() {
      while (!stopped) {
        const { done, value } = (await reader?.read().catch(() => undefined)) ?? { done: true, value: undefined }
        if (stopped) return undefined
        if (done || value === undefined) return void stop()
        const events = receive(value)
        if (events.length) return events
      }
      return undefined
    },
    bookmark: () =>
      watchEvent(
        'BOOKMARK',
        documentOf({ kind: kind.kind, apiVersion: kind.apiVersion, metadata: { resourceVersion: version } }),
      ),
    stop,
  }
}

type Lines = { readonly whole: readonly Uint8Array[]; readonly tooLong: boolean }

/** Returns the lines that a chunk completes and keeps the rest for the next chunk. */
function splitLines(longest: number): (chunk: Uint8Array) => Lines {
  let parts: Uint8Array[] = []
  let pendingBytes = 0
  const append = (part: Uint8Array) => {
    if (part.length) parts.push(part)
    pendingBytes += part.length
  }
  return chunk => {
    const whole: Uint8Array[] = []
    let start = 0
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      append(chunk.subarray(start, end + 1))
      start = end + 1
      if (pendingBytes > longest) return { whole, tooLong: true }
      const line = join(parts, pendingBytes)
      if (line.length > 1) whole.push(line) // an empty line only keeps the connection alive
      parts = []
      pendingBytes = 0
    }
    append(chunk.subarray(start))
    return { whole, tooLong: pendingBytes > longest }
  }
}

function join(parts: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = parts
  if (parts.length === 1 && only) return only
  const line = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    line.set(part, at)
    at += part.length
  }
  return line
}

const types: readonly string[] = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']

function readEvent(line: Uint8Array): WatchEvent | undefined {
  try {
    const { type, object } = JSON.parse(new TextDecoder().decode(line)) as { type: WatchEvent['type']; object: unknown }
    if (!types.includes(type) || !isObject(object)) return undefined
    const document =
      type === 'ERROR' ? statusDocument(object as unknown as Status) : documentOf(object as unknown as Resource)
    return { type, document, line }
  } catch {
    return undefined
  }
}
