// Writes an error as a Status, in JSON or YAML as the client prefers.

import type { ServerHttp2Stream } from 'node:http2'
import { abortResponse } from '../serving/abort-response.ts'
import type { Exchange } from '../serving/exchange.ts'
import { respond, statusOf } from '../serving/respond.ts'
import { negotiate, plain, type View } from './negotiate.ts'
import { writeError } from './write-result.ts'

export async function refuse(exchange: Exchange, error: unknown): Promise<void> {
  const { request, response } = exchange
  const status = statusOf(error)
  if (response.headersSent) return void abortResponse(response)
  const answer = writeError(status, errorFormat(exchange), exchange)
  if (!(status.code === 413 || status.code === 504) || request.complete) return respond(exchange, answer)
  // A body that nobody will read must not keep the connection, or the work that waits for it, for longer than serving/linger.ts has patience.
  if (request.httpVersionMajor === 1) response.setHeader('Connection', 'close')
  else exchange.onClosed(() => request.destroy())
  await respond(exchange, answer)
  if ('stream' in response) (response.stream as ServerHttp2Stream).close()
}

function errorFormat(exchange: Exchange): View['format'] {
  try {
    return negotiate(exchange.request.headers.accept, 'object').format
  } catch {
    return plain.format
  }
}
