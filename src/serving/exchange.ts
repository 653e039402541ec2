// One request and its answer on their way through the house, over HTTP/1.1 or HTTP/2 alike.

import type { IncomingMessage, ServerResponse } from 'node:http'

/** HTTP/2 arrives in the same shape, through Node's compatibility layer. */
export type Request = IncomingMessage
export type Response = ServerResponse

export type Exchange = {
  readonly request: Request
  readonly response: Response
  readonly method: string
  /** Path as sent, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly auditId: string
  /** Texts for Warning headers, each once. */
  readonly warnings: Set<string>
}

const noQuery = new URLSearchParams()

export function openExchange(request: Request, response: Response, uuid: () => string): Exchange {
  const url = request.url ?? '/'
  const mark = url.indexOf('?')
  const given = request.headers['audit-id']
  return {
    request,
    response,
    method: request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET'),
    path: mark === -1 ? url : url.slice(0, mark),
    query: mark === -1 ? noQuery : new URLSearchParams(url.slice(mark + 1)),
    auditId: typeof given === 'string' && /^[\w-]{1,64}$/.test(given) ? given : uuid(),
    warnings: new Set(),
  }
}

/** Only absence, `0` and `false` are false; everything else, even the empty value, is true (wire §1.8). */
export function isSet(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
