// Opens HTTP/2 connections to a cluster, and detects dead ones with pings.

import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** Opens a connection. The function stays the same as long as the gateway has the same certificates for the cluster. */
export type ConnectHttp2 = () => Socket

const settings = { enablePush: false }

export type Opened = { readonly session: ClientHttp2Session; readonly socket: TLSSocket }

type ConnectTarget = { readonly server: string; readonly connectWithin: number }

/** Resolves after the cluster has sent its maximum number of streams; undefined: it supports only HTTP/1.1. */
export function openHttp2(
  connect: ConnectHttp2,
  { server, connectWithin }: ConnectTarget,
): Promise<Opened | undefined> {
  const socket = connect() as TLSSocket
  socket.setNoDelay(true)
  socket.setKeepAlive(true, 30_000)
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      clearTimeout(timer)
      socket.destroy()
      reject(error)
    }
    const timer = setTimeout(() => fail(failed('connection timed out', 'ETIMEDOUT')), connectWithin)
    socket.on('error', fail)
    socket.on('close', () => fail(failed('connection reset', 'ECONNRESET')))
    socket.once('secureConnect', () => {
      const isPlain = socket.alpnProtocol !== 'h2'
      const done = (session?: ClientHttp2Session) => {
        clearTimeout(timer)
        resolve(session && { session, socket })
        if (!session) socket.destroy()
      }
      if (isPlain) return done()
      const session = connectHttp2(server, {
        createConnection: () => socket,
        settings,
        maxSessionMemory: 64,
      })
      session.on('error', fail)
      session.once('remoteSettings', ({ maxConcurrentStreams }) =>
        // One turn later: some servers send GOAWAY directly after their settings.
        setImmediate(() => done(maxConcurrentStreams === 0 ? undefined : session)),
      )
    })
  })
}

export const failed = (message: string, code: string) => Object.assign(new Error(message), { code })

/** A quiet stream does not show whether the cluster is alive, so the gateway sends pings. Any frame counts as an answer. */
export function startPings({ session, socket }: Opened, pingEvery: number): void {
  let read = -1
  let isEnding = false
  const check = () => {
    if (session.destroyed) {
      // Waits for the cluster to close its side as well, for a limited time.
      if (isEnding) socket.destroy()
      isEnding = true
      return
    }
    if (socket.bytesRead === read) {
      session.destroy(failed('no response to HTTP/2 pings', 'ETIMEDOUT'))
      return void socket.destroy()
    }
    read = socket.bytesRead
    sendPing(session)
  }
  const timer = setInterval(check, pingEvery).unref()
  socket.once('close', () => clearInterval(timer))
}

/** Sends a frame that the other side must acknowledge. */
function sendPing(session: ClientHttp2Session): void {
  try {
    // After GOAWAY Node sends no pings. Settings also need an acknowledgement, and these change nothing.
    if (session.closed) session.settings(settings)
    else session.ping(() => {})
  } catch {
    // The session ended at this moment. The next check notices it.
  }
}
