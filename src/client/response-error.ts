// The server's error as it was thrown there; connect.ts calls it for every answer that is not a success.

import { ApiError, type Status, type StatusDetails } from '../api/errors.ts'
import { isObject } from '../api/object.ts'

/** Same code, reason, message and details. What is no Status came from something between us and the server. */
export async function errorOf(response: Response): Promise<ApiError> {
  const status = await readStatus(response)
  if (!status) {
    const message = `the answer was ${response.status} without a Status: it may come from a proxy`
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

/** Whoever waits for so long is glad that it is a number. */
function checked({ retryAfterSeconds: after, ...others }: StatusDetails): StatusDetails {
  return Number.isFinite(after) && (after as number) >= 0 ? { ...others, retryAfterSeconds: after as number } : others
}

async function readStatus(response: Response): Promise<Status | undefined> {
  try {
    const body: unknown = await response.json()
    return isObject(body) && body.kind === 'Status' ? (body as unknown as Status) : undefined
  } catch {
    return undefined
  }
}
