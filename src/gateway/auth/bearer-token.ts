// Reads the bearer token or access key from the Authorization header, which a request must have exactly once.

import { unauthorized } from '../../api/errors.ts'
import { rejectDuplicateAuthorization } from '../../serving/duplicate-authorization.ts'
import type { Request } from '../../serving/exchange.ts'

const longest = 16 * 1024

/** Throws 401. */
export function bearerOf(request: Request): string {
  const { headers, rawHeaders, httpVersionMajor } = request
  const { authorization } = headers
  // The HTTP/1.1 listener reads at most this much. HTTP/2 gets the same response, and clusters never receive larger headers.
  if (httpVersionMajor === 2 && sizeOf(rawHeaders) > longest) throw headTooLarge
  if (authorization === undefined)
    throw unauthorized(
      'the request has no bearer token: send Authorization: Bearer <TOKEN>, with a direct-cluster token or an access key',
    )
  rejectDuplicateAuthorization(request)
  const secret = secretIn(authorization)
  if (secret === undefined || authorization.length > longest)
    throw unauthorized(
      'malformed Authorization header: send Authorization: Bearer <TOKEN>, with one token of at most 16 KiB',
    )
  return secret
}

/** The usual form first; then with more spaces or other letter case. */
function secretIn(authorization: string): string | undefined {
  if (authorization.startsWith('Bearer ') && authorization.length > 7 && !authorization.includes(' ', 7))
    return authorization.includes('\t', 7) ? undefined : authorization.slice(7)
  return /^bearer +(\S+) *$/i.exec(authorization.slice(0, longest + 8))?.[1]
}

/** The response of the listener to oversized headers. It has not read them, so there is no token. */
export const headTooLarge = unauthorized(
  'the request headers exceed 16 KiB, so the gateway did not read the bearer token: send smaller headers',
)

/** Whether the credential has the form of a token; access keys look different. */
export const isToken = (secret: string): boolean => secret.startsWith('eyJ') || secret.split('.').length === 3

function sizeOf(rawHeaders: readonly string[]): number {
  let size = 0
  for (const text of rawHeaders) size += text.length
  return size
}
