// Classifies "not found" errors: a missing object, or a server that does not serve the API.

import { ApiError, isNotFound } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'

export class MissingApiError extends ApiError {
  readonly side: 'virtual' | 'host'
  constructor(side: 'virtual' | 'host', kind: Kind, cause: ApiError) {
    super(cause.code, cause.status.reason ?? '', `has no ${kind.plural} (${kind.apiVersion})`)
    this.side = side
  }
}

export const isForbidden = (error: unknown): error is ApiError => error instanceof ApiError && error.code === 403

/** A list never returns 404 for missing objects, so the server does not serve the API. */
export const missingApi = (side: 'virtual' | 'host', kind: Kind, error: unknown): unknown =>
  isNotFound(error) ? new MissingApiError(side, kind, error) : error
