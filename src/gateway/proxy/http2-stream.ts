// The response on one stream of a shared HTTP/2 connection, with the same interface as an HTTP/1.1 response.

import { type ClientHttp2Stream, constants } from 'node:http2'
import type { ResponseHandler } from '../../transport/upstream.ts'
import { failed } from './http2-connect.ts'

type StreamConnection = {
  readonly isReused: boolean
  /** The last stream that the cluster processes, from its GOAWAY frame. */
  readonly lastSeen: () => number
}

/** The cluster did not process the request: it has no free stream, or requires HTTP/1.1, which is the last attempt. */
const refusals = [constants.NGHTTP2_REFUSED_STREAM, constants.NGHTTP2_HTTP_1_1_REQUIRED]

export function handleResponse(
  stream: ClientHttp2Stream,
  handler: ResponseHandler,
  connection: StreamConnection,
): { isWanted: boolean } {
  const answer = { isWanted: true }
  let hasAnswered = false
  let left: number | undefined
  let error: Error | undefined
  // Node reports a stream that was reset without an error like a complete one, but only after it has closed.
  let isWhole = false
  const push = stream.push.bind(stream)
  stream.push = (chunk, encoding) => {
    if (chunk === null && !stream.closed) isWhole = true
    return push(chunk, encoding)
  }
  stream.on('response', (headers, _flags, raw) => {
    hasAnswered = true
    const { ':status': status = 502, 'content-length': size } = headers
    // These responses have no body. Their Content-Length is that of the omitted body.
    left = size === undefined || status === 204 || status === 304 ? undefined : Number(size)
    if (answer.isWanted) handler.head({ status, rawHeaders: withoutPseudo(raw ?? []), connection: undefined })
    // Not earlier: data that arrived together with the headers would be delivered before them.
    stream.on('data', (chunk: Buffer) => {
      if (left !== undefined) left -= chunk.length
      if (answer.isWanted) handler.data(chunk)
    })
  })
  stream.on('end', () => {
    // A reset stream is reported when it closes.
    if (!answer.isWanted || !hasAnswered || !isWhole || stream.rstCode !== constants.NGHTTP2_NO_ERROR) return
    if (left) {
      error = failed('the response is shorter than its Content-Length', 'BAD_ANSWER')
      return
    }
    answer.isWanted = false
    handler.end()
  })
  stream.on('error', cause => {
    error ??= cause
  })
  stream.on('close', () => {
    if (!answer.isWanted) return
    answer.isWanted = false
    const isBehind = stream.id === undefined || stream.id > connection.lastSeen()
    const isRefused = !hasAnswered && (isBehind || refusals.includes(stream.rstCode))
    const how = { isStale: !hasAnswered && (connection.isReused || isRefused), isConnected: !isRefused, isRefused }
    handler.failed(error ?? failed('connection reset', 'ECONNRESET'), how)
  })
  return answer
}

function withoutPseudo(raw: readonly string[]): string[] {
  const kept: string[] = []
  for (let index = 0; index < raw.length; index += 2)
    if (!raw[index]?.startsWith(':')) kept.push(raw[index] as string, raw[index + 1] as string)
  return kept
}
