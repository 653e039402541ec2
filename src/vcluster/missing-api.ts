// A side that answers, and does not know what is followed there: it is another kind of server. endpoints.ts finds it, bin/sync.ts says which.

import { ApiError } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'

export class MissingApiError extends ApiError {
  readonly side: 'virtual' | 'host'
  constructor(side: 'virtual' | 'host', kind: Kind, cause: ApiError) {
    super(cause.code, cause.status.reason ?? '', `has no ${kind.plural} (${kind.apiVersion})`)
    this.side = side
  }
}

/** A list is there even when it is empty: where it is not found, the resource itself is missing. */
export const missingApi = (side: 'virtual' | 'host', kind: Kind, error: unknown): unknown =>
  error instanceof ApiError && error.code === 404 ? new MissingApiError(side, kind, error) : error
