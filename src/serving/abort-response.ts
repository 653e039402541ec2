// Ends an answer that is not whole so that nobody takes it for one. Called wherever a cluster, a token or the patience for a slow reader ends before the answer does.

import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Response } from './exchange.ts'

/** Over HTTP/1.1 the connection ends before the last chunk. Over HTTP/2 Node would say that a stream ended without an error. */
export function abortResponse(response: Response): void {
  const { stream } = response as { readonly stream?: ServerHttp2Stream }
  if (stream && !stream.closed) stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  // A pipelined response that still waits closes the connection at its turn; the responses before it are complete.
  else if (!stream && response.socket === null && !response.writableEnded)
    response.assignSocket = socket => void (socket as Socket).destroySoon()
  response.destroy()
}
