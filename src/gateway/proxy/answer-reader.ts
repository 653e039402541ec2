// Reads one answer of HTTP/1.1 from the bytes of a connection, strictly: what can be read in two ways is refused. connections.ts feeds it. Pure.

export type Head = {
  readonly status: number
  /** Name, value, name, value. */
  readonly rawHeaders: readonly string[]
  readonly connection: string | undefined
}

export type AnswerHandlers = {
  head(head: Head): void
  data(chunk: Buffer): void
  /** Whether the connection can take the next request. */
  end(isReusable: boolean): void
}

export interface AnswerReader {
  /** Throws BadAnswer. */
  take(chunk: Buffer): void
  /** The connection has ended; answers whether that is how the answer ends. */
  close(): boolean
}

export class BadAnswer extends Error {
  readonly code = 'BAD_ANSWER'
}

const mostHead = 64 * 1024
const mostLine = 4096
const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\x00-\x08\x0a-\x1f\x7f]*)?$/
const token = /^[!#$%&'*+\-.^_`|~\w]+$/
const control = /[\x00-\x08\x0a-\x1f\x7f]/
const sizeLine = /^([\da-f]{1,12})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?$/i

/** `left`: bytes of a length, or of the chunk at hand. */
type State = 'head' | 'length' | 'size' | 'chunk' | 'chunk end' | 'trailer' | 'until close' | 'done'

export function openAnswerReader(method: string, handlers: AnswerHandlers): AnswerReader {
  let state: State = 'head'
  let held: Buffer | undefined
  let left = 0
  let isReusable = false
  let trailers = 0

  const end = (rest: Buffer) => {
    state = 'done'
    handlers.end(isReusable && rest.length === 0)
  }

  function begin(text: string): void {
    const { head, framing, keeps } = readHead(text)
    const { status } = head
    if (status === 101) throw new BadAnswer('it changed the protocol unasked')
    if (status < 200) return // for instance 100: the answer is still to come
    isReusable = keeps && framing !== 'close'
    const isEmpty = method === 'HEAD' || status === 204 || status === 304
    state =
      isEmpty || framing === 0
        ? 'done'
        : framing === 'chunked'
          ? 'size'
          : framing === 'close'
            ? 'until close'
            : 'length'
    left = typeof framing === 'number' ? framing : 0
    if (isEmpty) isReusable = keeps
    handlers.head(head)
  }

  /** A line without its end; undefined: not all of it is there. */
  function line(
    bytes: Buffer,
    ending: string,
    most: number,
  ): { readonly text: string; readonly rest: Buffer } | undefined {
    const at = bytes.indexOf(ending, 0, 'latin1')
    if (at > most || (at === -1 && bytes.length > most)) throw new BadAnswer('it has a head or a line that is too long')
    if (at !== -1) return { text: bytes.toString('latin1', 0, at), rest: bytes.subarray(at + ending.length) }
    held = bytes
    return undefined
  }

  function data(bytes: Buffer): Buffer {
    const part = bytes.length <= left ? bytes : bytes.subarray(0, left)
    left -= part.length
    if (part.length) handlers.data(part)
    return bytes.subarray(part.length)
  }

  /** Answers what is left; undefined: more bytes are needed. */
  function step(bytes: Buffer): Buffer | undefined {
    switch (state) {
      case 'head': {
        const found = line(bytes, '\r\n\r\n', mostHead)
        if (!found) return undefined
        begin(found.text)
        if ((state as State) === 'done') end(found.rest)
        return found.rest
      }
      case 'length': {
        const rest = data(bytes)
        if (left === 0) end(rest)
        return rest
      }
      case 'size': {
        const found = line(bytes, '\r\n', mostLine)
        if (!found) return undefined
        const [, size] = sizeLine.exec(found.text) ?? []
        if (size === undefined) throw new BadAnswer('it has a chunk without a size')
        left = Number.parseInt(size, 16)
        state = left === 0 ? 'trailer' : 'chunk'
        return found.rest
      }
      case 'chunk': {
        const rest = data(bytes)
        if (left === 0) state = 'chunk end'
        return rest
      }
      case 'chunk end': {
        if (bytes[0] !== 13 || (bytes.length > 1 && bytes[1] !== 10))
          throw new BadAnswer('it has a chunk that is longer than it says')
        if (bytes.length > 1) {
          state = 'size'
          return bytes.subarray(2)
        }
        held = bytes
        return undefined
      }
      case 'trailer': {
        const found = line(bytes, '\r\n', mostLine)
        if (!found) return undefined
        trailers += found.text.length
        if (trailers > mostLine) throw new BadAnswer('its trailer is too long')
        if (found.text === '') end(found.rest)
        return found.rest
      }
      case 'until close':
        handlers.data(bytes)
        return bytes.subarray(bytes.length)
      case 'done':
        return undefined // nobody asked for it; the connection is not used again
    }
  }

  return {
    take(chunk) {
      let rest: Buffer | undefined = held ? Buffer.concat([held, chunk]) : chunk
      held = undefined
      while (rest?.length) rest = step(rest)
    },
    close() {
      if (state !== 'until close') return false
      state = 'done'
      handlers.end(false)
      return true
    },
  }
}

type Read = {
  readonly head: Head
  /** How long the body is, or how its end is known. */
  readonly framing: number | 'chunked' | 'close'
  readonly keeps: boolean
}

function readHead(text: string): Read {
  const [first = '', ...lines] = text.split('\r\n')
  const [, minor, code] = statusLine.exec(first) ?? []
  if (code === undefined) throw new BadAnswer('it is no HTTP/1.1')
  const rawHeaders: string[] = []
  let length: string | undefined
  let coding: string | undefined
  let connection: string | undefined
  for (const one of lines) {
    const at = one.indexOf(':')
    const name = at === -1 ? '' : one.slice(0, at)
    const value = withoutBlanks(one, at + 1)
    if (!token.test(name) || control.test(value)) throw new BadAnswer('it has a header that cannot be read')
    rawHeaders.push(name, value)
    if (name.length === 14 && name.toLowerCase() === 'content-length') {
      if (length !== undefined || !/^\d{1,15}$/.test(value)) throw new BadAnswer('its length is not clear')
      length = value
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      if (coding !== undefined || value.toLowerCase() !== 'chunked') throw new BadAnswer('its coding is not clear')
      coding = value
    } else if (name.length === 10 && name.toLowerCase() === 'connection')
      connection = connection === undefined ? value : `${connection}, ${value}`
  }
  if (length !== undefined && coding !== undefined) throw new BadAnswer('it has a length and a coding')
  return {
    head: { status: Number(code), rawHeaders, connection },
    framing: coding !== undefined ? 'chunked' : length === undefined ? 'close' : Number(length),
    keeps: minor === '1' && !/(?:^|,)\s*close\s*(?:,|$)/i.test(connection ?? ''),
  }
}

/** By hand: an expression for it tries every way to part a run of blanks, and a cluster could stop the gateway with one. */
function withoutBlanks(text: string, from: number): string {
  let [start, end] = [from, text.length]
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

const isBlank = (code: number) => code === 32 || code === 9
