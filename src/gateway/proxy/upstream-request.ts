// A request as a cluster gets it: its address, its headers and its frame, and what can happen to it on its way. forward.ts and upgrade.ts send it.

import type { ClientRequest, RequestOptions } from 'node:http'
import { type OutgoingHttpHeaders, sensitiveHeaders } from 'node:http2'
import { request as requestHttps } from 'node:https'
import { badRequest } from '../../api/errors.ts'
import type { Exchange, Request } from '../../serving/exchange.ts'
import type { Principal } from '../auth/principal.ts'
import { type Backend, noCredentials, type Ready, type Timeouts } from './backend.ts'
import { type Prefixes, requestHeaders } from './headers.ts'
import type { Route } from './routes.ts'
import type { Parting } from './watch-error-event.ts'

// Not imported: see kubeconfig/transport.ts.
const { request: requestHttp } = process.getBuiltinModule('node:http')

export type Forwarding = {
  readonly exchange: Exchange
  readonly route: Route
  readonly principal: Principal
  readonly backend: Backend
  readonly prefixes: Prefixes
  readonly timeouts: Timeouts
  /** Told when an answer that may go on for long has begun. */
  readonly started: (code: number) => void
  readonly parting: Parting
}

/** What the gateway is to the cluster now; throws 502 where it is nobody. */
export async function readyOf({ backend }: Forwarding): Promise<Ready> {
  try {
    return await backend.now()
  } catch (error) {
    throw noCredentials(backend, error as Error)
  }
}

function headersOf({ exchange, principal, prefixes, backend }: Forwarding, { authorization }: Ready): string[] {
  const { request, auditId } = exchange
  const headers = ['Host', addressOf(backend.server).host]
  requestHeaders(headers, { request, principal, prefixes, authorization, auditId })
  return headers
}

const pathOf = ({ backend, route }: Forwarding) => `${addressOf(backend.server).pathname}${route.path}${route.query}`

/** A request without a body, as text. Node checks what it sends; here it is done by hand. */
export function textOf(forwarding: Forwarding, ready: Ready): string {
  const headers = headersOf(forwarding, ready)
  const { method = 'GET' } = forwarding.exchange.request
  if (method === 'POST' || method === 'PUT' || method === 'PATCH') headers.push('Content-Length', '0')
  let text = `${method} ${pathOf(forwarding)} HTTP/1.1\r\n`
  for (let index = 0; index < headers.length; index += 2) text += `${headers[index]}: ${headers[index + 1]}\r\n`
  if (unspeakable.test(text) || text.split('\r\n').length !== headers.length / 2 + 2)
    throw badRequest('a header has characters that no header has')
  return `${text}\r\n`
}

/** The same in HTTP/2. HEAD and what has a body go otherwise. undefined: as text it would be refused, so it goes there. */
export function streamHeadersOf(forwarding: Forwarding, ready: Ready): OutgoingHttpHeaders | undefined {
  const headers = headersOf(forwarding, ready)
  const { host, protocol } = addressOf(forwarding.backend.server)
  const path = pathOf(forwarding)
  // Nobody else looks: HTTP/2 carries what would be the end of a line elsewhere.
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

/** Everything but tabs, line ends and what can be printed. */
const unspeakable = /[^\t\r\n\x20-\x7e\x80-\xff]|\r(?!\n)|(?<!\r)\n/

/** The same, and line ends. */
const offTheLine = /[^\t\x20-\x7e\x80-\xff]/

/** The request, not sent yet. `more`: further headers. */
export function openRequest(forwarding: Forwarding, ready: Ready, more: readonly string[] = []): ClientRequest {
  const { request } = forwarding.exchange
  const { hostname, port, protocol } = addressOf(forwarding.backend.server)
  const headers = headersOf(forwarding, ready)
  // By what is sent, never by what was named: a body without a frame would be read as the next request.
  const size = request.headers['content-length']
  if (hasBody(request))
    headers.push(...(size === undefined ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', size]))
  headers.push(...more)
  const options: RequestOptions = {
    agent: ready.agent,
    hostname,
    port,
    method: request.method ?? 'GET',
    path: pathOf(forwarding),
    headers,
  }
  const outgoing = (protocol === 'https:' ? requestHttps : requestHttp)(options)
  // A client may be gone before anybody waits for this one; its failure is nobody's then, and must not be the process's.
  return outgoing.on('error', () => {})
}

export type OnTheWay = {
  /** Milliseconds until an answer begins; undefined: any. */
  readonly within: number | undefined
  readonly late: () => void
  /** The client is gone. */
  readonly gone: () => void
  readonly failed: (error: Error, isConnected: boolean) => void
}

/** What can happen before an answer: too late, client gone, broken. Answers what is called when one has come. */
export function onTheWay(outgoing: ClientRequest, { exchange, timeouts }: Forwarding, on: OnTheWay): () => void {
  let isConnected = false
  const late = () => {
    on.late()
    outgoing.destroy()
  }
  const timer = on.within === undefined ? undefined : setTimeout(late, on.within)
  exchange.onClosed(() => {
    clearTimeout(timer)
    outgoing.destroy()
    on.gone()
  })
  whenConnected(outgoing, timeouts.connect, () => {
    isConnected = true
  })
  outgoing.on('error', error => {
    clearTimeout(timer)
    on.failed(error, isConnected)
  })
  return () => clearTimeout(timer)
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
export function hasBody(request: Request): boolean {
  const { headers } = request
  if (headers['transfer-encoding'] !== undefined) return true
  if (headers['content-length'] !== undefined) return headers['content-length'] !== '0'
  const { stream } = request as { stream?: { readonly endAfterHeaders?: boolean } }
  return request.httpVersionMajor === 2 && stream?.endAfterHeaders === false
}

/** A body on its way up, at the pace of the cluster. HTTP/2 tells of one whose stream was reset without an error as if it had ended. */
export function passUp(request: Request, outgoing: ClientRequest): void {
  const { stream } = request as { stream?: { readonly closed: boolean } }
  request.pipe(outgoing, { end: false })
  request.on('end', () => {
    if (stream?.closed) outgoing.destroy()
    else outgoing.end()
  })
}

/** A connection that does not come about is given up; its failure is the request's. */
function whenConnected(outgoing: ClientRequest, within: number, connected: () => void): void {
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
