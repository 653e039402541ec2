// Frees HTTP/2 streams that a client resets with NO_ERROR.
//
// Node keeps such a stream until its data is written. Data that waits for the client's flow-control window is never written after a reset,
// so the stream, its data and its watch would stay until the server ends, even after the connection is closed.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ServerHttp2Stream } from 'node:http2'

const channel = 'http2.server.stream.close'

/** For all HTTP/2 servers of the process. Returns a function that stops it. */
export function freeResetStreams(): () => void {
  subscribe(channel, onClose)
  return () => unsubscribe(channel, onClose)
}

/** Called while Node closes the stream. An immediate lets Node finish streams that ended normally. */
function onClose(message: unknown): void {
  const { stream } = message as { readonly stream: ServerHttp2Stream }
  if (!stream.writableFinished) setImmediate(() => stream.destroy())
}
