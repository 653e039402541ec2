// Sends requests to the server's handler without a socket: the same request and response shapes, in one process.

import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import type { Handler } from '../../src/http/server.ts'
import type { Request, Response } from '../../src/serving/exchange.ts'

export type HttpRequest = {
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** Lower-case names. */
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | Uint8Array
}
/** `warnings`: the Warning headers. `headers`: name, value, name, value. */
export type HttpAnswer = {
  readonly code: number
  readonly text: string
  readonly warnings?: string
  readonly headers?: readonly unknown[]
}

/** All values of a header. */
export const valuesOf = ({ headers = [] }: HttpAnswer, name: string): readonly string[] =>
  headers.flatMap((one, index) => (index % 2 === 0 && one === name ? [headers[index + 1]].flat().map(String) : []))

/** One connection for all requests, like a client with keep-alive. */
const socket = Object.assign(new EventEmitter(), { remoteAddress: '127.0.0.1' })

export async function send(handle: Handler, { method, url, headers, body }: HttpRequest): Promise<HttpAnswer> {
  const answer = new DirectResponse()
  await handle(requestOf(method, url, headers, body), answer as unknown as Response)
  answer.emit('close')
  return { code: answer.statusCode, text: answer.text, warnings: answer.warnings, headers: answer.headers }
}

/** A request with a streaming response, such as a watch. */
export type Streaming = { text(): string; close(): Promise<void> }

export function stream(handle: Handler, { method, url, headers, body }: HttpRequest): Streaming {
  const answer = new DirectResponse()
  const handled = handle(requestOf(method, url, headers, body), answer as unknown as Response)
  return {
    text: () => answer.text,
    close: async () => {
      answer.emit('close')
      await handled
    },
  }
}

function requestOf(method: string, url: string, headers: HttpRequest['headers'], body: HttpRequest['body']): Request {
  const bytes = body === undefined ? undefined : Buffer.from(body)
  const all = {
    host: 'localhost',
    ...headers,
    ...(bytes ? { 'content-length': String(bytes.length) } : {}),
  }
  const fields = {
    method,
    url,
    headers: all,
    rawHeaders: Object.entries(all).flat(),
    httpVersion: '1.1',
    httpVersionMajor: 1,
    socket,
  }
  // Without a body the stream has already ended, as in the server's listener.
  if (!bytes) return Object.assign(new EventEmitter(), { ...fields, readableEnded: true }) as unknown as Request
  const stream = new Readable({
    read() {
      this.push(bytes)
      this.push(null)
    },
  })
  // The whole request is available before it is handled.
  return Object.assign(stream, fields, { complete: true }) as unknown as Request
}

/** The members of a ServerResponse that the handler uses. */
class DirectResponse extends EventEmitter {
  readonly socket = socket
  statusCode = 200
  headersSent = false
  text = ''
  warnings = ''
  headers: readonly unknown[] = []

  /** `headers`: name, value, name, value. */
  writeHead(code: number, headers?: readonly unknown[]): this {
    this.statusCode = code
    if (Array.isArray(headers)) this.headers = headers
    const at = this.headers.indexOf('Warning')
    this.warnings = at < 0 ? '' : String(this.headers[at + 1])
    this.headersSent = true
    return this
  }
  flushHeaders(): void {}
  write(body: string | Uint8Array): boolean {
    this.text += (typeof body === 'string' ? Buffer.from(body, 'latin1') : Buffer.from(body)).toString()
    return true
  }
  end(body?: string | Uint8Array): this {
    if (body !== undefined) this.write(body)
    queueMicrotask(() => this.emit('close'))
    return this
  }
  destroy(): void {
    this.emit('close')
  }
}
