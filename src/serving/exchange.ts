// An HTTP exchange: a request and its response, over HTTP/1.1 or HTTP/2.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../api/caller.ts'
import type { Status } from '../api/errors.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { Json } from '../api/object.ts'
import { ownText } from '../api/own-text.ts'
import type { Document, List } from '../api/resources.ts'
import type { Decision } from './audit-policy.ts'
import type { Span } from './tracing/tracing.ts'

/** The facts about a request for the audit log. The pipeline fills them in; nothing is copied until an event is written. */
export type AuditContext = {
  readonly exchange: Exchange
  readonly question: Question
  /** The owner of the key, before any impersonation. */
  readonly caller: Caller | undefined
  readonly decision: Decision
  readonly received: number
  /** Without a kind no object is recorded, because its secret fields are unknown. */
  kind: Kind | undefined
  impersonated: Caller | undefined
  /** The decision of the authorizer and its reason; undefined: it was not called. */
  allowed: boolean | undefined
  reason: string
  /** Further annotations of the audit event, such as the id of a token. */
  noted: { readonly [name: string]: string } | undefined
  /** The body as sent, and whether it is an object or the operations of a JSON Patch. */
  sent: Json | undefined
  sentAs: 'object' | 'json-patch'
  answer: { readonly document?: Document; readonly list?: List; readonly status?: Status } | undefined
  /** Whether the last event of the request is written. */
  isOver: boolean
}

/** HTTP/2 requests have the same shape, through Node's compatibility layer. */
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
  /** Texts for Warning headers, without duplicates. */
  readonly warnings: ReadonlySet<string>
  warn(text: string): void
  /** The facts for the audit log; set when authentication begins. */
  auditContext: AuditContext | undefined
  /** The span of the request; undefined: tracing is off. */
  span: Span | undefined
  /** Whether the client disconnected or received the whole response. Stored here, because HTTP/2 does not provide it afterwards. */
  readonly closed: boolean
  /** Calls back when the exchange closes, or at once if it is closed. */
  onClosed(callback: () => void): void
}

/** Read-only: requests without a query share one object. */
export type Query = Omit<URLSearchParams, 'append' | 'delete' | 'set' | 'sort'>

const noQuery: Query = new URLSearchParams()

export function openExchange(request: Request, response: Response, uuid: () => string): Exchange {
  const url = request.url ?? '/'
  const mark = url.indexOf('?')
  const given = request.headers['audit-id']
  const exchange = new Opened(request, response, {
    path: mark === -1 ? url : ownText(url.slice(0, mark)),
    query: mark === -1 ? noQuery : new URLSearchParams(url.slice(mark + 1)),
    auditId: typeof given === 'string' && /^[\w-]{1,64}$/.test(given) ? given : uuid(),
  })
  followClosing(request, response, () => exchange.close())
  return exchange
}

/** A class, unlike most of the code: every request creates one, and its rarely used parts are created on demand. */
class Opened implements Exchange {
  readonly request: Request
  readonly response: Response
  readonly method: string
  readonly path: string
  readonly query: Query
  readonly auditId: string
  auditContext: AuditContext | undefined = undefined
  span: Span | undefined = undefined
  closed = false
  #warnings: Set<string> | undefined = undefined
  #waiting: (() => void)[] | undefined = undefined

  constructor(request: Request, response: Response, asked: Pick<Exchange, 'path' | 'query' | 'auditId'>) {
    this.request = request
    this.response = response
    this.method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET')
    this.path = asked.path
    this.query = asked.query
    this.auditId = asked.auditId
  }
  get warnings(): ReadonlySet<string> {
    return this.#warnings ?? none
  }
  warn(text: string): void {
    this.#warnings ??= new Set()
    this.#warnings.add(text)
  }
  onClosed(callback: () => void): void {
    this.#waiting ??= []
    if (this.closed) callback()
    else this.#waiting.push(callback)
  }
  close(): void {
    this.closed = true
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    for (const callback of waiting) callback()
  }
}

const none: ReadonlySet<string> = new Set()

/** A pipelined response that waits for an earlier one gets no event if the connection breaks. Only the socket reports that. */
function followClosing(request: Request, response: Response, closed: () => void): void {
  // A stream that was cancelled as soon as it opened is closed by now, and emits no further event.
  if ((request as { stream?: { destroyed?: boolean } }).stream?.destroyed) return void closed()
  const waitsInLine = request.httpVersionMajor === 1 && response.socket === null
  if (!waitsInLine) return void response.on('close', closed) // the event fires once
  const socket = request.socket.setMaxListeners(0) // one listener per pipelined response
  const once = () => {
    socket.removeListener('close', once)
    response.removeListener('close', once)
    closed()
  }
  socket.once('close', once)
  response.once('close', once)
}

/** Absent, `0` and `false` are false. Everything else is true, even the empty value (wire §1.8). */
export function isSet(query: Query, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
