// Converts an error response to an ApiError.

import { ApiError, type Status, type StatusDetails } from '../api/errors.ts'
import { isObject } from '../api/object.ts'

/** Keeps code, reason, message and details. A response without a Status comes from a proxy. */
export async function errorOf(response: Response): Promise<ApiError> {
  return errorFrom(response, await response.json().catch(() => undefined))
}

/** For a body that was read already. */
export function errorFrom(response: Pick<Response, 'status' | 'headers'>, body: unknown): ApiError {
  const status = isObject(body) && body.kind === 'Status' ? (body as unknown as Status) : undefined
  if (!status) {
    const message = `response ${response.status} without a Status: it may come from a proxy`
    const [after] = /^\d{1,6}$/.exec(response.headers.get('retry-after') ?? '') ?? []
    return new ApiError(response.status, '', message, after ? { details: { retryAfterSeconds: Number(after) } } : {})
  }
  const { code, reason = '', message = '', details, metadata } = status
  return new ApiError(isCode(code) ? code : response.status, reason, message, {
    ...(details ? { details: checked(details) } : {}),
    ...(metadata?.continue === undefined ? {} : { continue: metadata.continue }),
  })
}

const isCode = (code: unknown): code is number =>
  Number.isInteger(code) && (code as number) >= 100 && (code as number) < 600

/** Drops a value that is not a usable number of seconds. */
function checked({ retryAfterSeconds: after, ...others }: StatusDetails): StatusDetails {
  return Number.isFinite(after) && (after as number) >= 0 ? { ...others, retryAfterSeconds: after as number } : others
}
