// Closes an HTTP/1.1 connection only after a short wait for the client to stop sending. Closing at once would lose the response.

import type { Socket } from 'node:net'
import type { Request, Response } from './exchange.ts'

type Handle = (request: Request, response: Response) => void

/** Sockets that have sent their last response. Further data on them is not a request. */
const lingeringSockets = new WeakSet<Socket>()

/** Whether a request follows the last one of its connection. It is ignored. */
export function isBehindLast({ socket }: Request): boolean {
  if (!lingeringSockets.has(socket)) return false
  socket.destroy()
  return true
}

/** Waits at most `moment` milliseconds: enough for data in transit, not for a client that never stops. */
export const lingering =
  (handle: Handle, moment: number): Handle =>
  (request, response) => {
    if (isBehindLast(request)) return
    const { headers, httpVersionMajor } = request
    const mayStillCome = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    if (httpVersionMajor === 1 && mayStillCome) closeGently(request, moment)
    handle(request, response)
  }

/** The newest request with a body of each connection, until the body is read: an idle connection would keep the request in memory. */
const newest = new WeakMap<Socket, Request>()
/** Sockets whose destroySoon is replaced already. A connection can have thousands of requests, one after the other. */
const replaced = new WeakSet<Socket>()

function closeGently(request: Request, moment: number): void {
  const { socket } = request
  newest.set(socket, request)
  request.on('end', () => {
    if (newest.get(socket) === request) newest.delete(socket)
  })
  if (!replaced.has(socket)) replaceDestroySoon(socket, moment)
}

/**
 * Node calls destroySoon after the last response of a connection and has no option to wait for the client (nodejs/node#9085), so it is replaced.
 * A separate function without a request in its scope, because the socket keeps that scope in memory.
 */
function replaceDestroySoon(socket: Socket, moment: number): void {
  replaced.add(socket)
  const closeImmediately = socket.destroySoon
  socket.destroySoon = () => {
    const last = newest.get(socket)
    if (!last || last.complete || socket.destroyed) return closeImmediately.call(socket)
    lingeringSockets.add(socket)
    socket.end() // the client sees the end of the response
    last.unpipe()
    last.resume()
    const timer = setTimeout(() => socket.destroy(), moment).unref()
    last.once('end', () => socket.destroy())
    socket.once('close', () => {
      clearTimeout(timer)
      // Node reports the end only to requests without a response, so a reader of the rest would wait forever.
      if (!last.complete) last.destroy()
    })
  }
}
