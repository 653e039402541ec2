// A minimal HTTP/1.1 client with one connection and one request at a time, because the load runs on the same two cores as the server.

import { createConnection } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** `isLast`: whether the server closes the connection after this response. */
export type LeanAnswer = { readonly code: number; readonly text: string; readonly isLast: boolean }
export type LeanClient = {
  ask(method: string, path: string, body?: string, type?: string): Promise<LeanAnswer>
  /** Calls back with every line of a chunked response. Returns the status code. */
  follow(path: string, line: (text: string) => void): Promise<number>
  close(): void
}
/** Opens a client that gives up on an answer after so many milliseconds; absent: never. */
export type Connect = (patience?: number) => LeanClient

export type LeanOptions = {
  readonly url: string
  readonly key: string
  readonly ca?: string
  /** Sent with every request. */
  readonly headers?: { readonly [name: string]: string }
}

type Waiting = {
  readonly resolve: (answer: LeanAnswer) => void
  readonly reject: (error: Error) => void
  readonly line: ((text: string) => void) | undefined
}

/**
 * A shared read buffer for all connections: Node would allocate one per read, and collecting those takes CPU time from
 * the measured server.
 */
const inbox = Buffer.allocUnsafe(64 * 1024)

/** Opens the connection with the first request, and again after it was lost. */
export function openLeanClient({ url, key, ca, headers = {} }: LeanOptions): LeanClient {
  const { protocol, hostname, port, host } = new URL(url)
  const all = { Host: host, Authorization: `Bearer ${key}`, ...headers }
  const head = Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  let socket: ReturnType<typeof connect> | undefined
  let waiting: Waiting | undefined
  let reader = answerReader(finish)

  function connect() {
    const onread = {
      buffer: inbox,
      callback: (size: number) => {
        reader.take(Buffer.from(inbox.subarray(0, size)), waiting?.line)
        return true
      },
    }
    const at = { host: hostname, port: Number(port), onread }
    return protocol === 'https:' ? connectTls({ ...at, ca, servername: 'localhost' }) : createConnection(at)
  }

  function open() {
    const made = connect()
    reader = answerReader(finish)
    made.setNoDelay(true)
    made.on('error', () => {})
    made.on('close', () => {
      if (socket === made) socket = undefined
      fail(new Error('the connection was lost'))
    })
    return made
  }

  function finish(answer: LeanAnswer): void {
    const one = waiting
    waiting = undefined
    one?.resolve(answer)
  }

  function fail(error: Error): void {
    const one = waiting
    waiting = undefined
    one?.reject(error)
  }

  function send(bytes: string, line?: (text: string) => void): Promise<LeanAnswer> {
    return new Promise((resolve, reject) => {
      waiting = { resolve, reject, line }
      socket ??= open()
      socket.write(bytes)
    })
  }

  return {
    ask(method, path, body, type = 'application/json') {
      const about = body === undefined ? '' : `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
      return send(`${method} ${path} HTTP/1.1\r\n${head}${about}\r\n${body ?? ''}`)
    },
    follow: async (path, line) => (await send(`GET ${path} HTTP/1.1\r\n${head}\r\n`, line)).code,
    close: () => socket?.destroy(),
  }
}

/** Reads consecutive responses, with a length or in chunks. raw-fuzz.ts uses it, too. */
export function answerReader(finish: (answer: LeanAnswer) => void) {
  let rest: Buffer = Buffer.alloc(0)
  let code = 0
  let isLast = false
  let length = -1
  let body: Buffer[] = []
  let tail = ''

  /** False: needs more data. */
  function head(): boolean {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return false
    const text = rest.toString('latin1', 0, end)
    code = Number(text.slice(9, 12))
    isLast = text.includes('\r\nConnection: close')
    const sized = /\r\ncontent-length: (\d+)/i.exec(text)
    const isBare = code < 200 || code === 204 || code === 304
    length = isBare ? 0 : sized ? Number(sized[1]) : Number.POSITIVE_INFINITY
    rest = rest.subarray(end + 4)
    body = []
    tail = ''
    return true
  }

  function end(): void {
    length = -1
    finish({ code, text: Buffer.concat(body).toString(), isLast })
  }

  function chunk(line: ((text: string) => void) | undefined): boolean {
    const sized = rest.indexOf('\r\n')
    if (sized < 0) return false
    const size = Number.parseInt(rest.toString('latin1', 0, sized), 16)
    if (rest.length < sized + 4 + size) return false
    const bytes = rest.subarray(sized + 2, sized + 2 + size)
    rest = rest.subarray(sized + 4 + size)
    if (size === 0) end()
    else if (!line || code !== 200) body.push(bytes)
    else lines(bytes, line)
    return true
  }

  function lines(bytes: Buffer, line: (text: string) => void): void {
    const all = (tail + bytes.toString()).split('\n')
    tail = all.pop() as string
    for (const one of all) line(one)
  }

  function step(line: ((text: string) => void) | undefined): boolean {
    if (length === -1) return head()
    if (length === Number.POSITIVE_INFINITY) return chunk(line)
    if (rest.length < length) return false
    body.push(rest.subarray(0, length))
    rest = rest.subarray(length)
    end()
    return true
  }

  return {
    take(bytes: Buffer, line: ((text: string) => void) | undefined): void {
      rest = rest.length ? Buffer.concat([rest, bytes]) : bytes
      while (step(line));
    },
  }
}
