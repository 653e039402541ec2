// Defines tracing for programs. Without a collector, nothing implements it, and a program checks only for undefined.

import type { IncomingMessage } from 'node:http'

export type Attributes = { readonly [name: string]: string | number | boolean | undefined }

export type Outcome = {
  /** Replaces the name from the start of the span. */
  readonly name?: string | undefined
  readonly attributes?: Attributes
  readonly isError?: boolean
}

export interface Span {
  readonly traceId: string
  /** The header `traceparent` for requests to others that belong to this span. */
  readonly traceparent: string
  /** Starts a part of this span. It ends with this span at the latest. */
  child(name: string, kind?: 'internal' | 'client'): Span
  end(outcome?: Outcome): void
}

type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface Tracing {
  /** The span of a request that arrived; undefined: a health check or a scrape, which nobody wants to see. */
  server(exchange: { readonly request: IncomingMessage; readonly path: string }): Span | undefined
  /** Runs work with this span as the current one. */
  within<T>(span: Span, work: () => T): T
  /** Runs background work as a trace of its own. */
  root<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  /** Runs work as a part of the current span. Without a current span, only runs it. */
  part<T>(name: string, work: () => Promise<T>): Promise<T>
  /** Adds a span and the header `traceparent` to requests that are sent within a span. */
  sending(fetch: Fetch): Fetch
  /** Sends the remaining spans, within a time limit. */
  close(): Promise<void>
}
