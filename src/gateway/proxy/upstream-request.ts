// Builds the request for a cluster: path, headers and body.

import { type OutgoingHttpHeaders, sensitiveHeaders } from 'node:http2'
import { PassThrough, type Readable } from 'node:stream'
import { ApiError, badRequest } from '../../api/errors.ts'
import { openFifoCache } from '../../api/fifo-cache.ts'
import type { Exchange, Request } from '../../serving/exchange.ts'
import type { UpstreamRequest } from '../../transport/upstream.ts'
import type { Principal } from '../auth/principal.ts'
import { type Backend, noCredentials, type Ready, type Timeouts } from './backend.ts'
import { type Prefixes, requestHeaders } from './headers.ts'
import type { Route } from './routes.ts'
import type { WatchErrorEvent } from './watch-error-event.ts'

export type Forwarding = {
  readonly exchange: Exchange
  readonly route: Route
  readonly principal: Principal
  readonly backend: Backend
  readonly prefixes: Prefixes
  readonly timeouts: Timeouts
  /** Called when the response of a long-running request has begun. */
  readonly started: (code: number) => void
  readonly watchError: WatchErrorEvent
  /** The trace context for the cluster; undefined: that of the client. */
  readonly traceparent?: string | undefined
}

/** The gateway's current credentials for the cluster. Throws 502 if it has none. */
export async function readyOf({ backend, principal, exchange, route }: Forwarding, isAgain = false): Promise<Ready> {
  try {
    const ready = await backend.now()
    if (!backend.identify) return ready
    const who = { principal, request: exchange.request, isLong: route.isLong, isAgain }
    return { ...ready, authorization: await backend.identify(who) }
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw noCredentials(backend, error as Error)
  }
}

function headersOf(forwarding: Forwarding, { authorization }: Ready): string[] {
  const { exchange, principal, prefixes, backend, traceparent } = forwarding
  const { request, auditId } = exchange
  const headers = ['Host', addressOf(backend.server).host]
  const isIdentified = backend.identify !== undefined
  requestHeaders(headers, { request, principal, prefixes, authorization, auditId, isIdentified, traceparent })
  return headers
}

const pathOf = ({ backend, route }: Forwarding) => `${addressOf(backend.server).pathname}${route.path}${route.query}`

/** The request over HTTP/1.1. Throws 400 if a character could end a line early. */
export function requestOf(forwarding: Forwarding, ready: Ready): Omit<UpstreamRequest, 'body'> {
  const headers = headersOf(forwarding, ready)
  const path = pathOf(forwarding)
  if (offTheLine.test(path) || headers.some(text => offTheLine.test(text)))
    throw badRequest('the path or a header contains a character that HTTP does not allow')
  const { request } = forwarding.exchange
  const size = request.headers['content-length']
  // undici frames the body by what is sent. It checks a length, and sends a body without one in chunks.
  if (size !== undefined && hasBody(request)) headers.push('Content-Length', size)
  return { method: request.method ?? 'GET', path, headers, connectWithin: forwarding.timeouts.connect }
}

/**
 * The same for HTTP/2, except HEAD and requests with a body. undefined: HTTP/1.1 would reject these headers, so the caller uses it
 * to report the error.
 */
export function streamHeadersOf(forwarding: Forwarding, ready: Ready): OutgoingHttpHeaders | undefined {
  const headers = headersOf(forwarding, ready)
  const { host, protocol } = addressOf(forwarding.backend.server)
  const path = pathOf(forwarding)
  // Node does not check this: HTTP/2 can carry characters that end a line in HTTP/1.1.
  if (offTheLine.test(path) || headers.some(text => offTheLine.test(text))) return undefined
  const sent: { [name: string]: string | string[] } = {
    ':method': forwarding.exchange.request.method ?? 'GET',
    ':scheme': protocol.slice(0, -1),
    ':authority': host,
    ':path': path,
  }
  for (let index = 2; index < headers.length; index += 2) {
    const [name, value] = [(headers[index] as string).toLowerCase(), headers[index + 1] as string]
    const before = Object.hasOwn(sent, name) ? sent[name] : undefined
    sent[name] = before === undefined ? value : [before, value].flat()
  }
  return { ...sent, [sensitiveHeaders]: ['authorization'] }
}

/** Everything but tabs and printable characters. */
const offTheLine = /[^\t\x20-\x7e\x80-\xff]/

type Address = { readonly [part in 'pathname' | 'protocol' | 'host']: string }
/** Bounded, because clusters come and go. */
const addresses = openFifoCache<string, Address>(1024 * 1024, server => server.length)

function addressOf(server: string): Address {
  const known = addresses.get(server)
  if (known) return known
  const { pathname, protocol, host } = new URL(server)
  const address = { pathname: pathname.replace(/\/$/, ''), protocol, host }
  addresses.add(server, address)
  return address
}

/** An HTTP/2 request may have a body without a Content-Length. */
export function hasBody(request: Request): boolean {
  const { headers } = request
  if (headers['transfer-encoding'] !== undefined) return true
  if (headers['content-length'] !== undefined) return headers['content-length'] !== '0'
  const { stream } = request as { stream?: { readonly endAfterHeaders?: boolean } }
  return request.httpVersionMajor === 2 && stream?.endAfterHeaders === false
}

/**
 * A separate stream: undici destroys the body of a failed request, and the client's connection must stay open. Node ends an HTTP/2
 * request whose stream was reset as if it were complete.
 */
export function bodyOf(request: Request): Readable {
  const { stream } = request as { stream?: { readonly closed: boolean } }
  const body = new PassThrough()
  body.on('error', () => {})
  request.pipe(body, { end: false })
  request.on('end', () => {
    if (stream?.closed) body.destroy(new Error('the client reset the request'))
    else body.end()
  })
  return body
}
