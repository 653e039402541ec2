// Answers invalid HTTP, slow requests and oversized headers. There is no request object yet, so it writes to the socket.

import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { ApiError, badRequest } from '../api/errors.ts'
import type { Response } from './exchange.ts'
import { errorHeaders } from './respond.ts'

// Not imported: an ES import of node:http evaluates all its exports, including WebSocket, which loads fetch. That takes 50 ms.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

/** Time for the client to read the response. Closing at once would reset the connection and lose the response. */
const linger = 1000

/** `tooLarge`: the error for oversized headers. */
export const answerClientErrorWith =
  (tooLarge: ApiError) =>
  (error: Error & { readonly code?: string }, socket: Duplex): void =>
    answer(error.code === 'HPE_HEADER_OVERFLOW' ? tooLarge : refusalOf(error.code), socket)

function answer(refusal: ApiError, socket: Duplex): void {
  if (socket.writableEnded || waiting.has(socket)) return // already answered, or about to be; the rest is discarded
  if (!socket.writable) return void socket.destroy()
  const before = unfinishedBefore(socket)
  if (before) {
    waiting.add(socket)
    before.once('close', () => {
      waiting.delete(socket)
      answer(refusal, socket)
    })
    return
  }
  if (isAnswering(socket)) return void socket.destroy()
  const { status } = refusal
  const body = `${JSON.stringify(status)}\n`
  const headers = { ...headersOfRefusal(status, Buffer.byteLength(body)), Connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  endGently(socket, `HTTP/1.1 ${status.code} ${STATUS_CODES[status.code]}\r\n${lines.join('')}\r\n${body}`)
}

const headersOfRefusal = (status: ApiError['status'], length: number): { readonly [name: string]: string } => ({
  'Audit-Id': randomUUID(),
  'Cache-Control': 'no-cache, private',
  'Content-Type': 'application/json',
  'Content-Length': String(length),
  ...errorHeaders(status),
})

function endGently(socket: Duplex, last: string | Uint8Array): void {
  socket.on('error', () => {})
  socket.end(last)
  socket.resume()
  // Closes the connection of a client that never closes its side.
  const timer = setTimeout(() => socket.destroy(), linger).unref()
  socket.once('close', () => clearTimeout(timer))
}

function refusalOf(code: string | undefined): ApiError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ApiError(408, 'RequestTimeout', 'the client did not send the complete request in time')
  return badRequest('the request is not valid HTTP')
}

/** The newest response of each HTTP/1.1 connection, until it is sent: an idle connection would keep it and its request in memory. */
const newest = new WeakMap<Duplex, Response>()

export function trackResponse(socket: Duplex, response: Response): void {
  newest.set(socket, response)
  response.on('close', () => {
    if (newest.get(socket) === response) newest.delete(socket)
  })
}

/** Connections with a refusal that waits for earlier responses. */
const waiting = new WeakSet<Duplex>()

/** The response to a valid request before the invalid one. */
function unfinishedBefore(socket: Duplex): Response | undefined {
  const response = newest.get(socket)
  if (!response || response.writableFinished) return undefined
  if (response.req.complete) return response
  // The newest request is the invalid one. Node keeps the response that is being written, and others wait without a socket.
  return response.socket === null ? (socket as { _httpMessage?: Response })._httpMessage : undefined
}

/** The client would read a second response as a part of the first. */
function isAnswering(socket: Duplex): boolean {
  const response = newest.get(socket)
  return response !== undefined && !response.writableFinished && response.headersSent
}
