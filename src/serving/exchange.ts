// One request and its answer on their way through the house, over HTTP/1.1 or HTTP/2 alike.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Trail } from './audit-event.ts'

/** HTTP/2 arrives in the same shape, through Node's compatibility layer. */
export type Request = IncomingMessage
export type Response = ServerResponse

export type Exchange = {
  readonly request: Request
  readonly response: Response
  readonly method: string
  /** Path as sent, without the query. */
  readonly path: string
  readonly query: Query
  readonly auditId: string
  /** Texts for Warning headers, each once. */
  readonly warnings: Set<string>
  /** What the audit log will say of it; there once it was tried to find out who asks. */
  trail: Trail | undefined
  /** Whether the client is gone or has taken the whole answer. Kept here, for HTTP/2 does not tell it afterwards. */
  readonly closed: boolean
  /** Calls back when it is closed; at once if it is already. */
  onClosed(callback: () => void): void
}

/** Only to be read: requests without a query share one. */
export type Query = Omit<URLSearchParams, 'append' | 'delete' | 'set' | 'sort'>

const noQuery: Query = new URLSearchParams()

export function openExchange(request: Request, response: Response, uuid: () => string): Exchange {
  const url = request.url ?? '/'
  const mark = url.indexOf('?')
  const given = request.headers['audit-id']
  const waiting: (() => void)[] = []
  const exchange = {
    request,
    response,
    method: request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET'),
    path: mark === -1 ? url : url.slice(0, mark),
    query: mark === -1 ? noQuery : new URLSearchParams(url.slice(mark + 1)),
    auditId: typeof given === 'string' && /^[\w-]{1,64}$/.test(given) ? given : uuid(),
    warnings: new Set<string>(),
    trail: undefined as Trail | undefined,
    closed: false,
    onClosed(callback: () => void) {
      if (exchange.closed) callback()
      else waiting.push(callback)
    },
  }
  followClosing(request, response, () => {
    exchange.closed = true
    for (const callback of waiting.splice(0)) callback()
  })
  return exchange
}

/** An answer that waits behind another one of its connection (pipelining) hears nothing when that breaks: only the socket tells. */
function followClosing(request: Request, response: Response, closed: () => void): void {
  const waitsInLine = request.httpVersionMajor === 1 && response.socket === null
  if (!waitsInLine) return void response.once('close', closed)
  const socket = request.socket.setMaxListeners(0) // as many as stand in line
  const once = () => {
    socket.removeListener('close', once)
    response.removeListener('close', once)
    closed()
  }
  socket.once('close', once)
  response.once('close', once)
}

/** Only absence, `0` and `false` are false; everything else, even the empty value, is true (wire §1.8). */
export function isSet(query: Query, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
