// An HTTP exchange: a request and its response, over HTTP/1.1 or HTTP/2.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../api/caller.ts'
import type { Status } from '../api/errors.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { Json } from '../api/object.ts'
import type { Document, List } from '../api/resources.ts'
import type { Decision } from './audit-policy.ts'

/** One request's facts. The pipeline fills in what it learns; nothing is looked at or copied unless a line is written. */
export type AuditContext = {
  readonly exchange: Exchange
  readonly question: Question
  /** Whose key it was, before any impersonation. */
  readonly caller: Caller | undefined
  readonly decision: Decision
  readonly received: number
  /** Without it no object is recorded: nobody would know what in it is secret. */
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
  /** Whether its last line is written already. */
  isOver: boolean
}

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
  readonly warnings: ReadonlySet<string>
  warn(text: string): void
  /** The facts for the audit log; set when authentication begins. */
  auditContext: AuditContext | undefined
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
  const exchange = new Opened(request, response, {
    path: mark === -1 ? url : url.slice(0, mark),
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

/** An answer that waits behind another one of its connection (pipelining) hears nothing when that breaks: only the socket tells. */
function followClosing(request: Request, response: Response, closed: () => void): void {
  // A stream that was cancelled in the same moment it was opened has been closed by now, and will not say so again.
  if ((request as { stream?: { destroyed?: boolean } }).stream?.destroyed) return void closed()
  const waitsInLine = request.httpVersionMajor === 1 && response.socket === null
  if (!waitsInLine) return void response.on('close', closed) // the event fires once
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
