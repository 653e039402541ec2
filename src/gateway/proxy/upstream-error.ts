// The error of an unanswered upstream request: the response for the client, and whether a retry is safe.

import type { FailureInfo } from '../../transport/upstream.ts'
import { brokenOff, notReached, refusedUnread } from './backend.ts'
import type { Forwarding } from './upstream-request.ts'

export class UpstreamError extends Error {
  readonly reported: Error
  /** The request was sent on a reused connection, and there was no response. */
  readonly isStale: boolean
  readonly isRefused: boolean
  constructor(reported: Error, { isStale = false, isRefused = false }: Partial<FailureInfo> = {}) {
    super(reported.message)
    this.reported = reported
    this.isStale = isStale
    this.isRefused = isRefused
  }
}

/** A closed connection did not deliver the request. If it closed at that moment, the cluster may have received a write. */
export function upstreamError({ exchange, backend }: Forwarding, error: Error, how: FailureInfo): UpstreamError {
  if (how.isRefused) return new UpstreamError(refusedUnread(backend, error), how)
  const isHarmless = !how.isConnected || (how.isStale && exchange.method === 'GET')
  return new UpstreamError(isHarmless ? notReached(backend, error) : brokenOff(backend, error), how)
}
