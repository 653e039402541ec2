// Who is behind a request at the gateway: what a token or a review of an access key said, and for how long that counts.

import type { Caller } from '../../api/caller.ts'
import { type ApiError, unauthorized } from '../../api/errors.ts'

export type Principal = {
  /** With the scope of the token or key. */
  readonly caller: Caller
  readonly keyUid: string
  /** Whose word it is: the issuer of the token, or the service that was asked about the key. */
  readonly from: string
  /** Which keys of the issuer it was verified with, or which way to the service it was asked about. With others it is judged anew. */
  readonly generation: number
  /** Of a token; a key has none. */
  readonly jti: string | undefined
  /** Of a token: the second it was made in. Of a key: its place in the order of revocations when it was asked about. */
  readonly issued: number
  /** Milliseconds: when it counts no more. Open streams end then, too. */
  readonly expires: number
}

/** `why`: where somebody said. */
export function countsNoMore({ jti }: Principal, why?: string): ApiError {
  const what = jti === undefined ? 'access key' : 'token'
  return unauthorized(`the ${what} counts no more${why === undefined ? '' : `: ${why}`}`)
}
