// The listeners: HTTP/1.1 and HTTP/2 over TLS by ALPN, plain HTTP on loopback, with bounds on what a client may hold (D1).

import { createServer, type Server } from 'node:http'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { badRequest } from '../api/errors.ts'
import type { Request, Response } from './exchange.ts'
import type { CertificateSource } from './tls.ts'

export type Handle = (request: Request, response: Response) => void

export interface Listener {
  readonly url: string
  /** Takes nothing new, lets what is under way finish, and ends what has not after so many milliseconds. */
  close(milliseconds: number): Promise<void>
}

/** Go clients keep idle connections for 90 seconds; closing sooner would meet their next request half-way. */
const keepAlive = 125_000
const headersWithin = 30_000
const requestWithin = 60_000
const maxConnections = 20_000

export async function listenHttps(at: Address, certificates: CertificateSource, handle: Handle): Promise<Listener> {
  const { certificate: cert, key } = certificates.current
  const server = createSecureServer({
    allowHTTP1: true,
    cert,
    key,
    minVersion: 'TLSv1.2',
    maxSessionMemory: 32,
    settings: { maxConcurrentStreams: 1000, maxHeaderListSize: 64 * 1024 },
  })
  certificates.follow(pair => server.setSecureContext({ cert: pair.certificate, key: pair.key }))
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', session => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    session.on('error', () => session.destroy())
  })
  server.on('tlsClientError', (_, socket) => socket.destroy())
  const bounded = server as Http2SecureServer & Pick<Server, 'keepAliveTimeout' | 'headersTimeout' | 'requestTimeout'>
  bound(bounded as unknown as Server)
  server.on('request', handle as never)
  return started(server as unknown as Server, at, 'https', async milliseconds => {
    certificates.stop()
    for (const session of sessions) session.close()
    setTimeout(() => {
      for (const session of sessions) session.destroy()
    }, milliseconds).unref()
  })
}

/** A Host that is not a loopback name is somebody else's page talking to us (DNS rebinding). */
export async function listenHttp(at: Address, handle: Handle): Promise<Listener> {
  const server = createServer()
  bound(server)
  server.on('request', handle)
  return started(server, at, 'http', async () => {})
}

export type Address = { readonly host: string; readonly port: number }

function bound(server: Server): void {
  server.keepAliveTimeout = keepAlive
  server.headersTimeout = headersWithin
  server.requestTimeout = requestWithin
  server.maxConnections = maxConnections
  server.on('connection', socket => socket.setNoDelay(true))
  server.on('clientError', (_, socket) => {
    if (!socket.writable) return void socket.destroy()
    const body = JSON.stringify(badRequest('the request is not valid HTTP').status)
    socket.end(
      `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
  })
}

function started(
  server: Server,
  { host, port }: Address,
  scheme: string,
  closing: (milliseconds: number) => Promise<void>,
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.removeListener('error', reject)
      const bound = server.address() as AddressInfo
      const name = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address
      resolve({ url: `${scheme}://${name}:${bound.port}`, close: milliseconds => close(server, milliseconds, closing) })
    })
  })
}

async function close(
  server: Server,
  milliseconds: number,
  closing: (milliseconds: number) => Promise<void>,
): Promise<void> {
  const closed = new Promise<void>(resolve => server.close(() => resolve()))
  await closing(milliseconds)
  server.closeIdleConnections?.()
  const sweep = setInterval(() => server.closeIdleConnections?.(), 50)
  const timer = setTimeout(() => server.closeAllConnections?.(), milliseconds)
  await closed
  clearInterval(sweep)
  clearTimeout(timer)
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/i

export function isLoopback(host: string | undefined): boolean {
  return host !== undefined && loopback.test(host.replace(/:\d+$/, ''))
}
