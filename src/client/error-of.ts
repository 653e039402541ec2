// The server's error as it was thrown there; connect.ts calls it for every answer that is not a success.

import { ApiError, type Status } from '../api/errors.ts'
import { isObject } from '../api/object.ts'

/** Same code, reason, message and details. What is no Status came from something between us and the server. */
export async function errorOf(response: Response): Promise<ApiError> {
  const status = await readStatus(response)
  if (!status) {
    const message = `the answer was ${response.status} without a Status: it may come from a proxy`
    const [after] = /^\d{1,6}$/.exec(response.headers.get('retry-after') ?? '') ?? []
    return new ApiError(response.status, '', message, after ? { details: { retryAfterSeconds: Number(after) } } : {})
  }
  const { reason = '', message = '', details, metadata } = status
  return new ApiError(status.code ?? response.status, reason, message, {
    ...(details ? { details } : {}),
    ...(metadata?.continue === undefined ? {} : { continue: metadata.continue }),
  })
}

async function readStatus(response: Response): Promise<Status | undefined> {
  try {
    const body: unknown = await response.json()
    return isObject(body) && body.kind === 'Status' ? (body as unknown as Status) : undefined
  } catch {
    return undefined
  }
}
