// Sends requests over HTTP/1.1 to one server, with the connection pool of undici.

import type { Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import type { Client, Dispatcher, Pool } from 'undici'
import { brokenConnection } from './connection-error.ts'
import type { Connect } from './connector.ts'
import { proxyAuthorization } from './proxy.ts'
import { loadUndici } from './undici.ts'

export type UpstreamRequest = {
  readonly method: string
  readonly path: string
  /** Name, value, name, value. Without hop-by-hop headers. */
  readonly headers: readonly string[]
  /** A stream needs a Content-Length header; otherwise it is sent in chunks. undici destroys it if the request fails. */
  readonly body?: string | Readable | undefined
  readonly upgrade?: string | undefined
  /** Milliseconds for connecting. */
  readonly connectWithin: number
  /** Uses a new connection and closes it afterwards. */
  readonly isAlone?: boolean | undefined
}

export type ResponseHead = {
  readonly status: number
  /** Name, value, name, value. */
  readonly rawHeaders: readonly string[]
  readonly connection: string | undefined
}

/** Receives a response. Nothing follows `end`, `failed` or `upgraded`. */
export type ResponseHandler = {
  head(head: ResponseHead): void
  data(chunk: Buffer): void
  end(): void
  failed(error: Error, how: FailureInfo): void
  upgraded?(head: ResponseHead, socket: Duplex): void
}

export type FailureInfo = {
  /** The request was sent on a reused connection, and there was no response. */
  readonly isStale: boolean
  /** The server may have processed the request. */
  readonly isConnected: boolean
  /** The server reported that it did not process the request. */
  readonly isRefused?: boolean
}

/** A request in flight. */
export interface Call {
  pause(): void
  resume(): void
  /** Closes the connection. The handler gets no further calls. */
  drop(): void
}

export interface Upstream {
  send(request: UpstreamRequest, handler: ResponseHandler): Call
  /** Closes idle connections. The next request opens a new one. */
  renew(): void
  /** Closes idle connections now and the others after their request. Later requests use a connection each. */
  retire(): void
  /** Closes every connection. */
  destroy(): void
}

export type UpstreamOptions = {
  readonly server: string
  readonly connect: Connect
  readonly proxy?: URL | undefined
  /** Default: unlimited. */
  readonly connections?: number
}

const maxHeaderBytes = 64 * 1024
/** A server's `Keep-Alive: timeout` takes precedence. */
const idleFor = 60_000
const slowestConnect = 10_000

export function openUpstream({ server, connect, proxy, connections }: UpstreamOptions): Upstream {
  const { origin } = new URL(server)
  /** Requests for plain HTTP go to the proxy with their full URL; those for HTTPS go through a tunnel. */
  const isRelayed = proxy !== undefined && origin.startsWith('http:')
  const prefix = isRelayed ? origin : ''
  const more = isRelayed ? proxyAuthorization(proxy) : []
  const { Client: OneClient, Pool: ManyClients } = loadUndici()
  let connectWithin = slowestConnect
  let isRetired = false
  let isNewConnection = false
  const alone = new Set<Client>()
  const options: Client.Options = {
    connect: (_, callback) =>
      void connect(connectWithin).then(
        socket => callback(null, reportResets(socket)),
        (error: Error) => callback(error, null),
      ),
    // The callers have their own, more exact timeouts.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: idleFor,
  }
  const openPool = (): Pool =>
    new ManyClients(isRelayed ? proxy.origin : origin, {
      ...options,
      connections: connections ?? null,
    }).on('connect', () => {
      // undici sends the waiting request in the same turn, directly after this event.
      isNewConnection = true
      queueMicrotask(() => {
        isNewConnection = false
      })
    })
  let pool = openPool()

  function sendAlone(dispatched: Dispatcher.DispatchOptions, handler: ResponseHandler): Call {
    const client = new OneClient(isRelayed ? proxy.origin : origin, options)
    alone.add(client)
    const call = new UpstreamCall(handler, () => false)
    client.dispatch(dispatched, call)
    client.close(() => alone.delete(client))
    return {
      pause: () => call.pause(),
      resume: () => call.resume(),
      // With abort alone, undici would open another connection before it drops the request.
      drop: () => {
        if (call.forget()) void client.destroy()
      },
    }
  }

  return {
    send(request, handler) {
      ;({ connectWithin } = request)
      const { method, path, headers, body = null, upgrade = null } = request
      const dispatched = {
        method,
        path: prefix + path,
        headers: [...headers, ...more],
        body,
        upgrade,
      } as Dispatcher.DispatchOptions
      if (request.isAlone || isRetired || upgrade) return sendAlone(dispatched, handler)
      const call = new UpstreamCall(handler, () => {
        const isKept = !isNewConnection
        isNewConnection = false
        return isKept
      })
      pool.dispatch(dispatched, call)
      return call
    },
    renew() {
      if (isRetired) return
      void pool.close()
      pool = openPool()
    },
    retire() {
      if (isRetired) return
      isRetired = true
      void pool.close()
    },
    destroy() {
      isRetired = true
      void pool.destroy()
      for (const client of alone) void client.destroy()
    },
  }
}

/**
 * undici treats a reset as the end of a response without a length, so half a response would look complete. With another code, the
 * reset stays an error.
 */
function reportResets(socket: Socket): Socket {
  return socket.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = brokenConnection
  })
}

/** A class, because the gateway has thousands of them. */
class UpstreamCall implements Dispatcher.DispatchHandler, Call {
  private handler: ResponseHandler | undefined
  private readonly started: () => boolean
  private controller: Dispatcher.DispatchController | undefined
  private isKept = false
  private isStarted = false
  private hasAnswered = false
  private status = 0

  /** `started` returns whether the request is sent on a reused connection. */
  constructor(handler: ResponseHandler, started: () => boolean) {
    this.handler = handler
    this.started = started
  }

  pause(): void {
    this.controller?.pause()
  }

  resume(): void {
    this.controller?.resume()
  }

  drop(): void {
    if (this.forget()) this.controller?.abort(dropped)
  }

  /** Returns whether the request was still in flight. */
  forget(): boolean {
    const { handler } = this
    this.handler = undefined
    return handler !== undefined
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.isStarted = true
    this.isKept = this.started()
    if (this.handler) this.controller = controller
    else controller.abort(dropped)
  }

  onResponseStarted(): void {
    this.hasAnswered = true
  }

  onResponseStart({ rawHeaders }: Dispatcher.DispatchController, status: number): void {
    if (status === 101) throw badResponse('the server switched protocols without an upgrade request')
    if (status < 200) return
    this.status = status
    const head = headOf(status, rawHeaders as Buffer[])
    this.handler?.head(head)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.handler?.data(chunk)
  }

  onResponseEnd(): void {
    const { handler } = this
    this.handler = undefined
    handler?.end()
  }

  onRequestUpgrade({ rawHeaders }: Dispatcher.DispatchController, status: number, _: object, socket: Duplex): void {
    const { handler } = this
    this.handler = undefined
    if (handler?.upgraded) handler.upgraded(headOf(status, rawHeaders as Buffer[]), socket)
    else socket.on('error', () => {}).destroy()
  }

  onResponseError(_: unknown, error: Error): void {
    const { handler, status, isKept, hasAnswered, isStarted } = this
    this.handler = undefined
    const { code } = error as { readonly code?: string }
    // Such a response may have a Content-Length without a body. undici reports that as an error.
    if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' && (status === 204 || status === 304)) handler?.end()
    else handler?.failed(plainError(error), { isStale: isKept && !hasAnswered, isConnected: isStarted })
  }
}

const dropped = new Error('the caller dropped the request')

const badResponse = (message: string): Error => Object.assign(new Error(message), { code: 'BAD_ANSWER' })

/** undici's parser errors have no code, and carry bytes of the response, which must not reach a log. */
const plainError = (error: Error): Error =>
  error.name === 'HTTPParserError' ? Object.assign(new Error(error.message), { code: 'HPE_INVALID_RESPONSE' }) : error

/** undici and its parser reject most ambiguous responses. This function rejects the rest. */
function headOf(status: number, raw: readonly Buffer[]): ResponseHead {
  const rawHeaders: string[] = []
  let connection: string | undefined
  let framings = 0
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] as Buffer).toString('latin1')
    const value = (raw[index + 1] as Buffer).toString('latin1')
    rawHeaders.push(name, value)
    const { length } = name
    if (length === 10 && name.toLowerCase() === 'connection')
      connection = connection === undefined ? value : `${connection}, ${value}`
    else if (length === 14 && name.toLowerCase() === 'content-length') framings++
    else if (length === 17 && name.toLowerCase() === 'transfer-encoding') {
      if (value.toLowerCase() !== 'chunked')
        throw badResponse('the response has a Transfer-Encoding other than chunked')
      framings++
    }
  }
  if (framings > 1) throw badResponse('the response states its length more than once')
  return { status, rawHeaders, connection }
}
