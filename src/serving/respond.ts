// Writes responses: serialises results and errors, and sets their headers.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { ApiError, internal, type Status } from '../api/errors.ts'
import type { Exchange } from './exchange.ts'

export type Answer = {
  readonly code: number
  readonly type: string
  readonly body: Uint8Array
  /** Whether a line feed follows the body. */
  readonly line?: boolean
  /** A list is sent as one header per value. */
  readonly headers?: { readonly [name: string]: string | readonly string[] }
}

const compress = promisify(gzip)
const compressAbove = 128 * 1024
const inOnePiece = 8 * 1024
const stillHeld = 256 * 1024
const patience = 60_000
const encoder = new TextEncoder()

/** undefined: the response is written. Most responses are small and need not wait. */
export function respond(exchange: Exchange, answer: Answer): Promise<void> | undefined {
  if (answer.body.length <= compressAbove || answer.headers?.['Content-Encoding'])
    return send(exchange, answer, answer.body, false)
  return takesGzip(exchange.request.headers['accept-encoding'])
    ? sendZipped(exchange, answer)
    : send(exchange, answer, answer.body, false)
}

/** The number of threads for compression. Other responses wait here, where those of disconnected clients cost nothing. */
const maxConcurrentGzip = 4
const line: (() => void)[] = []
let zipping = 0

async function sendZipped(exchange: Exchange, answer: Answer): Promise<void> {
  if (zipping >= maxConcurrentGzip) await new Promise<void>(resolve => line.push(resolve))
  if (exchange.closed) return line.shift()?.()
  await send(exchange, answer, await zip(answer.line ? withLine(answer.body) : answer.body), true)
}

async function zip(body: Uint8Array): Promise<Uint8Array> {
  zipping++
  try {
    return await compress(body, { level: 1 })
  } finally {
    zipping--
    line.shift()?.()
  }
}

function send(exchange: Exchange, answer: Answer, body: Uint8Array, zipped: boolean): Promise<void> | undefined {
  const { request, response } = exchange
  if (exchange.closed || response.headersSent) return undefined
  const headers = ['Audit-Id', exchange.auditId, 'Content-Type', answer.type]
  const own = answer.headers
  if (zipped) headers.push('Content-Encoding', 'gzip')
  headers.push('Cache-Control', String(own?.['Cache-Control'] ?? 'no-cache, private'))
  if (own || answer.body.length > compressAbove) headers.push(...ownHeaders(answer))
  if (exchange.warnings.size) headers.push('Warning', warningHeaders(exchange.warnings) as unknown as string)
  const isLine = answer.line === true && !zipped
  headers.push('Content-Length', String(isLine ? body.length + 1 : body.length))
  response.writeHead(answer.code, headers)
  if (request.method === 'HEAD') response.end()
  else if (body.length <= inOnePiece && request.httpVersionMajor === 1)
    response.end(isLine ? `${latin1(body)}\n` : latin1(body), 'latin1')
  else response.end(isLine ? withLine(body) : body)
  return body.length > stillHeld ? taken(exchange) : undefined
}

/** One character per byte. Node sends headers and body in one write if both are text. Two writes would cost more than this conversion. */
const latin1 = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('latin1')

function withLine(body: Uint8Array): Uint8Array {
  const whole = Buffer.allocUnsafe(body.length + 1)
  whole.set(body)
  whole[body.length] = 0x0a
  return whole
}

function ownHeaders({ body, headers = {} }: Answer): string[] {
  const vary = [headers['Vary'], body.length > compressAbove ? 'Accept-Encoding' : undefined].filter(Boolean)
  const others = Object.entries(headers).filter(([name]) => name !== 'Cache-Control' && name !== 'Vary')
  return [...(others.flat() as string[]), ...(vary.length ? ['Vary', vary.join(', ')] : [])]
}

/** A large response stays in memory, and counts as in flight, until the client has read it. A client that does not read is disconnected. */
function taken(exchange: Exchange): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(() => {
      exchange.response.destroy()
      resolve()
    }, patience).unref()
    exchange.onClosed(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** `gzip;q=0` rejects gzip, and so does `*;q=0` if gzip is not named. */
function takesGzip(accepted: string | string[] | undefined): boolean {
  let any = false
  for (const entry of String(accepted ?? '')
    .slice(0, 4096)
    .split(',')) {
    const [coding = '', ...parameters] = entry.split(';').map(part => part.trim().toLowerCase())
    const weight = parameters.find(parameter => parameter.startsWith('q='))?.slice(2)
    const wanted = weight === undefined || Number(weight) > 0
    if (coding === 'gzip') return wanted
    if (coding === '*') any = wanted
  }
  return any
}

/** The Status of any error. An error that is not an ApiError is a bug, and its message stays internal. */
export function statusOf(error: unknown): Status & { readonly code: number } {
  return error instanceof ApiError ? error.status : internal().status
}

/** The headers of an error. Retry-After only if the request had no effect, because clients then repeat it. */
export function errorHeaders(status: Status & { readonly code: number }): { [name: string]: string } {
  const retry = status.details?.retryAfterSeconds
  return {
    ...(status.code === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
    ...(retry !== undefined && (status.code === 429 || status.code === 503) ? { 'Retry-After': String(retry) } : {}),
    ...(status.code === 403 ? { 'X-Content-Type-Options': 'nosniff' } : {}),
  }
}

export const textAnswer = (code: number, text: string): Answer => ({
  code,
  type: 'text/plain; charset=utf-8',
  body: encoder.encode(text),
  headers: { 'X-Content-Type-Options': 'nosniff' },
})

/** One header per warning. If all together exceed 4096 characters, each is cut to 256, and warnings beyond the limit are dropped. */
export function warningHeaders(warnings: ReadonlySet<string>): string[] {
  const texts = [...warnings].map(text => text.replace(/[\x00-\x1f\x7f]/g, ' '))
  const cut = texts.reduce((sum, text) => sum + text.length, 0) > 4096 ? texts.map(text => text.slice(0, 256)) : texts
  const kept: string[] = []
  let length = 0
  for (const text of cut) {
    length += text.length
    if (length <= 4096) kept.push(text)
  }
  return kept.map(text => `299 - "${toLatin1(text).replace(/["\\]/g, '\\$&')}"`)
}

/** Header values are bytes. Other characters are sent as UTF-8, which Kubernetes clients decode. */
const toLatin1 = (text: string) => (/[^\x00-\x7f]/.test(text) ? Buffer.from(text).toString('latin1') : text)
