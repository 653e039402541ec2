// The error of an unanswered upstream request: the response for the client, and whether a retry is safe.

import type { FailureInfo } from '../../transport/upstream.ts'
import { brokenOff, notReached, refusedUnread } from './backend.ts'
import type { Forwarding } from './upstream-request.ts'

export class Failed extends Error {
  readonly told: Error
  /** The connection had been used before, and nothing came of this request. */
  readonly isStale: boolean
  readonly isRefused: boolean
  constructor(told: Error, { isStale = false, isRefused = false }: Partial<FailureInfo> = {}) {
    super(told.message)
    this.told = told
    this.isStale = isStale
    this.isRefused = isRefused
  }
}

/** A closed connection did not deliver the request. If it was aborted at that moment, the cluster may have received a write. */
export function failure({ exchange, backend }: Forwarding, error: Error, how: FailureInfo): Failed {
  if (how.isRefused) return new Failed(refusedUnread(backend, error), how)
  const isHarmless = !how.isConnected || (how.isStale && exchange.method === 'GET')
  return new Failed(isHarmless ? notReached(backend, error) : brokenOff(backend, error), how)
}
