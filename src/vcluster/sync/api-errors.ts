// What is not found on a side: an object, or what is followed there, and then it is another kind of server. endpoints.ts finds it, bin/sync.ts says which.

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'

export class MissingApiError extends ApiError {
  readonly side: 'virtual' | 'host'
  constructor(side: 'virtual' | 'host', kind: Kind, cause: ApiError) {
    super(cause.code, cause.status.reason ?? '', `has no ${kind.plural} (${kind.apiVersion})`)
    this.side = side
  }
}

/** An API server says so in a Status of its own; without one, something that stands before it has answered, and nothing is known. */
export const isNotFound = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === 404 && error.status.reason === 'NotFound'

/** A list is there even when it is empty: where it is not found, the resource itself is missing. */
export const missingApi = (side: 'virtual' | 'host', kind: Kind, error: unknown): unknown =>
  isNotFound(error) ? new MissingApiError(side, kind, error) : error
