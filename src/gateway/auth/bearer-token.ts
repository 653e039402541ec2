// The one secret a request brings: its Authorization header, once, and nothing else. credentials.ts calls it.

import { unauthorized } from '../../api/errors.ts'
import { rejectDuplicateAuthorization } from '../../serving/duplicate-authorization.ts'
import type { Request } from '../../serving/exchange.ts'

const longest = 16 * 1024

/** Throws 401. */
export function bearerOf(request: Request): string {
  const { headers, rawHeaders, httpVersionMajor } = request
  const { authorization } = headers
  // Of HTTP/1.1 the listener reads no more; both are answered alike, and no cluster is shown what it would not read either.
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

/** As nearly everybody sends it, or with more blanks and in other letters. */
function secretIn(authorization: string): string | undefined {
  if (authorization.startsWith('Bearer ') && authorization.length > 7 && !authorization.includes(' ', 7))
    return authorization.includes('\t', 7) ? undefined : authorization.slice(7)
  return /^bearer +(\S+) *$/i.exec(authorization.slice(0, longest + 8))?.[1]
}

/** Headers that were not read have no token that counts: the listener answers so for what is larger than it reads. */
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
