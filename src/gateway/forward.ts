// Hands a request on to a cluster and its answer back, as they come: nothing is gathered, and nobody is sent more than they take.

import { type ClientRequest, type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Exchange, Request } from '../serving/exchange.ts'
import {
  type Backend,
  brokenOff,
  noCredentials,
  notReached,
  redirected,
  refusedUs,
  type Timeouts,
  tooLate,
} from './backend.ts'
import { answerHeaders, type Prefixes, requestHeaders } from './headers.ts'
import type { Principal } from './principal.ts'
import type { Route } from './routes.ts'

export type Forwarding = {
  readonly exchange: Exchange
  readonly route: Route
  readonly principal: Principal
  readonly backend: Backend
  readonly prefixes: Prefixes
  readonly timeouts: Timeouts
  /** Told when an answer that may go on for long has begun. */
  readonly started: (code: number) => void
}

/** Resolves when the answer is out, or the client is gone. Rejects with an ApiError before anything was sent. */
export async function forward(forwarding: Forwarding): Promise<void> {
  const { exchange } = forwarding
  const answer = await answerOf(forwarding)
  if (answer === undefined) return // the client left
  await pass(forwarding, answer)
  if (!exchange.request.complete) exchange.request.resume() // answered early: what still comes is let go
}

/** Tries once more where that can do no harm: on a connection that had ended, and with fresh credentials. */
async function answerOf(forwarding: Forwarding): Promise<Sent | undefined> {
  const { exchange, backend } = forwarding
  const isRepeatable = exchange.method === 'GET' && !hasBody(exchange.request)
  for (let attempt = 0; ; attempt++) {
    const mayRepeat = isRepeatable && attempt === 0
    const sent = await send(forwarding).catch(error => {
      if (!(error instanceof Failed)) throw error
      if (mayRepeat && error.isStale) return undefined
      throw error.told
    })
    if (sent === 'gone') return undefined
    if (!sent) continue
    const { statusCode = 0 } = sent.answer
    if (statusCode === 401) {
      sent.outgoing.destroy()
      if (backend.refuse() && mayRepeat) continue
      throw refusedUs(backend)
    }
    if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) {
      sent.outgoing.destroy()
      throw redirected(backend)
    }
    return sent
  }
}

type Sent = { readonly outgoing: ClientRequest; readonly answer: IncomingMessage }

class Failed extends Error {
  readonly told: Error
  /** The connection had been used before, and nothing came of this request. */
  readonly isStale: boolean
  constructor(told: Error, isStale: boolean) {
    super(told.message)
    this.told = told
    this.isStale = isStale
  }
}

async function send(forwarding: Forwarding): Promise<Sent | 'gone'> {
  const { exchange, backend, route, timeouts } = forwarding
  const outgoing = await open(forwarding, [])
  if (exchange.closed) {
    outgoing.destroy()
    return 'gone'
  }
  return new Promise((resolve, reject) => {
    let isConnected = false
    const timer = route.isLong
      ? undefined
      : setTimeout(() => {
          reject(new Failed(tooLate(backend, timeouts.answer), false))
          outgoing.destroy()
        }, timeouts.answer)
    exchange.onClosed(() => {
      clearTimeout(timer)
      outgoing.destroy()
      resolve('gone')
    })
    whenConnected(outgoing, timeouts.connect, () => {
      isConnected = true
    })
    outgoing.on('error', error => {
      clearTimeout(timer)
      const isStale = outgoing.reusedSocket
      reject(new Failed(isConnected && !isStale ? brokenOff(backend, error) : notReached(backend, error), isStale))
    })
    outgoing.on('response', answer => {
      clearTimeout(timer)
      resolve({ outgoing, answer })
    })
    if (hasBody(exchange.request)) exchange.request.pipe(outgoing)
    else outgoing.end()
  })
}

/** The request as a cluster sees it, not sent yet. `more`: further headers. */
export async function open(forwarding: Forwarding, more: readonly string[]): Promise<ClientRequest> {
  const { exchange, route, principal, backend, prefixes } = forwarding
  const { agent, authorization } = await backend.now().catch(error => {
    throw noCredentials(backend, error as Error)
  })
  const { hostname, port, pathname, protocol, host } = addressOf(backend.server)
  const { request } = exchange
  const headers = requestHeaders({ request, principal, prefixes, authorization, auditId: exchange.auditId })
  // By what is sent, never by what was named: a body without a frame would be read as the next request.
  const size = request.headers['content-length']
  const frame = !hasBody(request)
    ? []
    : size === undefined
      ? ['Transfer-Encoding', 'chunked']
      : ['Content-Length', size]
  const options: RequestOptions = {
    agent,
    hostname,
    port,
    method: request.method ?? 'GET',
    path: `${pathname}${route.path}${route.query}`,
    headers: ['Host', host, ...headers, ...frame, ...more],
  }
  const outgoing = (protocol === 'https:' ? requestHttps : requestHttp)(options)
  // A client may be gone before anybody waits for this one; its failure is nobody's then, and must not be the process's.
  return outgoing.on('error', () => {})
}

type Address = { readonly [part in 'hostname' | 'port' | 'pathname' | 'protocol' | 'host']: string }
const addresses = new Map<string, Address>()

function addressOf(server: string): Address {
  const known = addresses.get(server)
  if (known) return known
  const { hostname, port, pathname, protocol, host } = new URL(server)
  const address = {
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: port || (protocol === 'https:' ? '443' : '80'),
    pathname: pathname.replace(/\/$/, ''),
    protocol,
    host,
  }
  addresses.set(server, address)
  return address
}

/** HTTP/2 may have a body without saying how long it is. */
function hasBody(request: Request): boolean {
  const { headers } = request
  if (headers['transfer-encoding'] !== undefined) return true
  if (headers['content-length'] !== undefined) return headers['content-length'] !== '0'
  const { stream } = request as { stream?: { readonly endAfterHeaders?: boolean } }
  return request.httpVersionMajor === 2 && stream?.endAfterHeaders === false
}

/** A connection that does not come about is given up; its failure is the request's. */
export function whenConnected(outgoing: ClientRequest, within: number, connected: () => void): void {
  outgoing.on('socket', socket => {
    if (!socket.connecting) return connected()
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 30_000)
    const timer = setTimeout(
      () => outgoing.destroy(Object.assign(new Error('it did not answer in time'), { code: 'ETIMEDOUT' })),
      within,
    )
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      connected()
    })
    socket.once('close', () => clearTimeout(timer))
  })
}

/** What a cluster breaks off is broken off for the client, too: half an answer must not look like a whole one. */
function pass({ exchange, route, started }: Forwarding, { outgoing, answer }: Sent): Promise<void> {
  const { response, auditId } = exchange
  const { statusCode = 502, rawHeaders, headers } = answer
  response.writeHead(statusCode, ['Audit-Id', auditId, ...answerHeaders(rawHeaders, headers.connection)])
  if (route.isLong) {
    response.flushHeaders()
    started(statusCode)
  }
  return new Promise(resolve => {
    exchange.onClosed(() => {
      if (!answer.readableEnded) outgoing.destroy()
      resolve()
    })
    answer.on('error', () => response.destroy())
    outgoing.on('error', () => response.destroy())
    answer.pipe(response)
  })
}
