// Listeners: HTTP/1.1 and HTTP/2 over TLS by ALPN, and plain HTTP on loopback, with limits per client (D1).

import type { Server } from 'node:http'
import { createSecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ApiError } from '../api/errors.ts'
import { answerClientErrorWith, trackResponse } from './client-error.ts'
import type { Request, Response } from './exchange.ts'
import { isBehindLast, lingering } from './lingering-close.ts'
import { freeResetStreams } from './reset-streams.ts'
import type { CertificateSource } from './tls.ts'

// Not imported: an ES import of node:http evaluates all its exports, including WebSocket, which loads fetch. That takes 50 ms.
const { createServer } = process.getBuiltinModule('node:http')

export type Handle = (request: Request, response: Response) => void

/** The handler of protocol upgrades (HTTP/1.1 only). Other requests are ordinary. */
export type Upgrades = {
  readonly wanted: (request: Request) => boolean
  readonly take: (request: Request, socket: Duplex, head: Buffer) => void
}

export interface Listener {
  readonly url: string
  /** Accepts nothing new, waits for requests in flight, and aborts them after this many milliseconds. */
  close(milliseconds: number): Promise<void>
}

export type Bounds = {
  /**
   * Maximum idle time of a connection. Go clients keep idle connections for 90 seconds; closing earlier could collide with their
   * next request.
   */
  readonly keepAlive: number
  readonly headersWithin: number
  readonly requestWithin: number
  /** How long the server reads and discards further data from a client after its last response. */
  readonly linger: number
}

const usual: Bounds = { keepAlive: 125_000, headersWithin: 30_000, requestWithin: 60_000, linger: 2000 }
const maxConnections = 20_000
/** Milliseconds of silence before TCP keep-alive probes. */
const probeAfter = 30_000
const lookEvery = 30_000
/**
 * The limit that the server announces over HTTP/2; Go clients keep to it. A larger header list ends its stream. nghttp2 closes the connection
 * for a single header above 64 KiB and for more than nine frames; RFC 9113 §10.5.1 allows both (decision 0018).
 */
const maxHead = 64 * 1024
const headersTooLarge = new ApiError(431, 'RequestHeaderFieldsTooLarge', 'the headers of the request are too large')
const minVersion = 'TLSv1.2'

export async function listenHttps(at: Address, certificates: CertificateSource, handle: Handle): Promise<Listener> {
  const { certificate: cert, key } = certificates.current
  const bounds = { ...usual, ...at.bounds }
  const server = createSecureServer({
    allowHTTP1: true,
    ...http1Options(at),
    cert,
    key,
    minVersion,
    handshakeTimeout: bounds.headersWithin,
    maxSessionMemory: 32,
    settings: { maxConcurrentStreams: 1000, maxHeaderListSize: maxHead },
  })
  // For new connections. Options that are not repeated here would be reset.
  certificates.follow(pair => server.setSecureContext({ cert: pair.certificate, key: pair.key, minVersion }))
  const stopFreeing = freeResetStreams()
  const sessions = new Set<ServerHttp2Session>()
  let isClosing = false
  server.on('session', session => {
    sessions.add(session)
    if (isClosing) session.close()
    session.on('close', () => sessions.delete(session))
    session.on('error', (error: Error & { readonly code?: string }) => {
      // Network errors are not reported.
      if (error.code === 'ERR_HTTP2_ERROR') at.broken?.(error.message)
      session.destroy()
    })
    closeWhenIdle(session, bounds.keepAlive)
  })
  server.on('tlsClientError', (_, socket) => socket.destroy())
  // The HTTP/1.1 settings and events exist on this server, but not in its type.
  const http = server as unknown as Server
  const sockets = bound(http, bounds, at.tooLarge)
  listenFor(http, at, handle)
  return started(http, at, 'https', milliseconds => {
    certificates.stop()
    isClosing = true
    for (const session of sessions) session.close()
    return close(http, sockets, milliseconds).finally(stopFreeing)
  })
}

/** Only a session without streams is idle; a quiet watch is a stream. Any frame, also a ping, restarts the timer. */
function closeWhenIdle(session: ServerHttp2Session, milliseconds: number): void {
  let streams = 0
  session.on('stream', stream => {
    streams++
    stream.once('close', () => {
      streams--
      if (streams === 0) session.setTimeout(milliseconds) // the timeout may have expired in the meantime
    })
  })
  session.setTimeout(milliseconds)
  session.on('timeout', () => {
    if (streams === 0) session.close()
  })
}

/** A Host header that is not a loopback name can be a DNS rebinding attack from a web page. */
export async function listenHttp(at: Address, handle: Handle): Promise<Listener> {
  const server = createServer(http1Options(at))
  const sockets = bound(server, { ...usual, ...at.bounds }, at.tooLarge)
  listenFor(server, at, handle)
  return started(server, at, 'http', milliseconds => close(server, sockets, milliseconds))
}

export type Address = {
  readonly host: string
  readonly port: number
  readonly bounds?: Partial<Bounds>
  readonly upgrades?: Upgrades | undefined
  /** The error for headers above Node's limit of 16 KiB; default 431. For HTTP/2 see `maxHead`. */
  readonly tooLarge?: ApiError | undefined
  /** Called when an HTTP/2 connection is closed for a protocol error, with the message of Node's library. */
  readonly broken?: ((why: string) => void) | undefined
}

/** Requests without a body have a body that has already ended. Node's types do not have these HTTP/1.1 options for HTTP/2 servers. */
const http1Options = ({ upgrades }: Address): object => ({
  optimizeEmptyRequests: true,
  ...(upgrades ? { shouldUpgradeCallback: upgrades.wanted } : {}),
})

function listenFor(server: Server, { upgrades, bounds }: Address, handle: Handle): void {
  const gently = buffering(lingering(handle, bounds?.linger ?? usual.linger))
  server.on('request', gently)
  server.on('checkContinue', continuing(gently))
  if (!upgrades) return
  server.on('upgrade', (request: Request, socket, head) => {
    if (!isBehindLast(request)) upgrades.take(request, socket, head)
  })
}

/**
 * Keeps data that arrives while Node has paused a connection, because an earlier response is not written yet. Node's parser reads from the TLS
 * connection directly. Records that are decrypted already still reach the paused parser, which fails (HPE_PAUSED) and resets the
 * connection. After a `data` listener was added, Node reads through the socket's buffer, which keeps them. That costs some CPU, so
 * only paused connections do it.
 */
const buffering =
  (handle: Handle): Handle =>
  (request, response) => {
    const { socket } = request
    if (request.httpVersionMajor < 2) {
      trackResponse(socket, response)
      if ('encrypted' in socket && socket.isPaused()) readThroughBuffer(socket)
    }
    handle(request, response)
  }
const ignore = () => {}

function readThroughBuffer(socket: Socket): void {
  socket.on('data', ignore).off('data', ignore)
  // While the parser read directly, the stream waited for data. The empty push ends that; else the socket is never read again.
  socket.push('')
}

/** While earlier responses are not written yet (no socket), Node would put the 100 into the middle of one. The 100 is optional. */
const continuing =
  (handle: Handle): Handle =>
  (request, response) => {
    if (response.socket) response.writeContinue()
    handle(request, response)
  }

/** Sets the limits of a server. Returns its open sockets, below TLS if there is TLS. */
function bound(
  server: Server,
  { keepAlive, headersWithin, requestWithin }: Bounds,
  tooLarge = headersTooLarge,
): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.keepAliveTimeout = keepAlive
  server.headersTimeout = headersWithin
  server.requestTimeout = requestWithin
  server.maxConnections = maxConnections
  Object.assign(server, { connectionsCheckingInterval: Math.min(lookEvery, headersWithin) })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.setNoDelay(true)
    socket.setKeepAlive(true, probeAfter)
  })
  server.on('clientError', answerClientErrorWith(tooLarge))
  return sockets
}

function started(server: Server, { host, port }: Address, scheme: string, close: Listener['close']): Promise<Listener> {
  return new Promise((resolve, reject) => {
    // Closes everything that was opened.
    const fail = (error: Error) => void close(0).then(() => reject(error))
    server.once('error', fail)
    server.listen({ host, port }, () => {
      server.removeListener('error', fail)
      const bound = server.address() as AddressInfo
      const name = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address
      resolve({ url: `${scheme}://${name}:${bound.port}`, close })
    })
  })
}

/** Closes sockets one by one: HTTP/2 servers have no way to close all, and half-open clients would never close theirs. */
async function close(server: Server, sockets: ReadonlySet<Socket>, milliseconds: number): Promise<void> {
  const closed = new Promise<void>(resolve => server.close(() => resolve()))
  server.closeIdleConnections()
  const sweep = setInterval(() => server.closeIdleConnections(), 50)
  const timer = setTimeout(() => {
    for (const socket of sockets) socket.destroy()
  }, milliseconds)
  await closed
  clearInterval(sweep)
  clearTimeout(timer)
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/i

export function isLoopback(host: string | undefined): boolean {
  return host !== undefined && loopback.test(host.replace(/:\d+$/, ''))
}
