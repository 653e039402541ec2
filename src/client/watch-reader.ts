// Reads the events of a watch from the bytes of an answer, one line each, wherever the chunks end. connect.ts opens it.

import { internal, type Status } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type Resource } from '../api/object.ts'
import { documentOf, statusDocument, type Watch, type WatchEvent, watchEvent } from '../api/resources.ts'

/** Longer than any object may be (D7), shorter than what a broken server could make a client hold. */
const longestLine = 8 * 1024 * 1024
const newline = 0x0a

export type ReadWatchOptions = {
  readonly kind: Kind
  /** The revision the watch was asked to begin at: what a bookmark says before anything was seen. */
  readonly from: string
  /** Ends the request. */
  readonly abort: () => void
  readonly longestLine?: number
}

/** A connection that breaks ends the watch, as its end does: whoever watches goes on from the last version seen. */
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

  /** The ERROR event is the last one: nothing after it could be trusted. */
  const failed = (message: string): WatchEvent => {
    stop()
    return watchEvent('ERROR', statusDocument({ ...internal().status, message }))
  }

  const take = (chunk: Uint8Array): WatchEvent[] => {
    const events: WatchEvent[] = []
    const { whole, tooLong } = lines(chunk)
    for (const line of whole) {
      const event = readEvent(line)
      if (!event) return [...events, failed('the watch sent a line that is no event')]
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
        const events = take(value)
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

/** Gives the lines that a chunk completes; what is left waits for the next one. */
function splitLines(longest: number): (chunk: Uint8Array) => Lines {
  let parts: Uint8Array[] = []
  let waiting = 0
  const hold = (part: Uint8Array) => {
    if (part.length) parts.push(part)
    waiting += part.length
  }
  return chunk => {
    const whole: Uint8Array[] = []
    let start = 0
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      hold(chunk.subarray(start, end + 1))
      start = end + 1
      if (waiting > longest) return { whole, tooLong: true }
      const line = join(parts, waiting)
      if (line.length > 1) whole.push(line) // an empty line keeps a connection warm and says nothing
      parts = []
      waiting = 0
    }
    hold(chunk.subarray(start))
    return { whole, tooLong: waiting > longest }
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
