// Aborts an incomplete response, so that the client does not treat it as complete.

import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Response } from './exchange.ts'

/** Over HTTP/1.1 the connection ends before the last chunk. Over HTTP/2 Node would report a stream that ended without an error. */
export function abortResponse(response: Response): void {
  const { stream } = response as { readonly stream?: ServerHttp2Stream }
  if (stream && !stream.closed) stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  // A pipelined response that waits for its turn ends the connection then. destroy() would drop earlier responses that are not written yet.
  else if (!stream && response.socket === null && !response.writableEnded)
    return void response.once('socket', (socket: Socket) => socket.destroySoon())
  response.destroy()
}
