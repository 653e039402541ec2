// The authenticated identity of a gateway request, from a token or from a review of an access key, and its expiry.

import type { Caller } from '../../api/caller.ts'
import { ApiError, unauthorized } from '../../api/errors.ts'

export type Principal = {
  /** With the scope of the token or key. */
  readonly caller: Caller
  readonly keyUid: string
  /** For a token whose scope is one cluster: the uid of that cluster, if it was known. */
  readonly clusterUid?: string | undefined
  /** The issuer of the token, or the management API that reviewed the key. */
  readonly from: string
  /** The generation of the issuer's keys, or of the connection to the management API. After a change, the identity is verified again. */
  readonly generation: number
  /** The id of a token; undefined for a key. */
  readonly jti: string | undefined
  /** For a token: when it was issued, in seconds. For a key: the number of the last revocation at the time of its review. */
  readonly issued: number
  /** Milliseconds: when it expires. Open streams end then, too. */
  readonly expires: number
  /** Milliseconds: when a key of an open stream is reviewed again, because its expiry may have changed. */
  readonly reviewAt?: number | undefined
}

/** A token that was valid before. The audit log names its user; the response does not. */
export class RejectedToken extends ApiError {
  readonly holder: Pick<Principal, 'caller' | 'keyUid' | 'jti'>
  constructor(message: string, holder: RejectedToken['holder']) {
    super(401, 'Unauthorized', message)
    this.holder = holder
  }
}

/** `why`: the reason, if known. */
export function noLongerValid({ jti }: Principal, why?: string): ApiError {
  const what = jti === undefined ? 'access key' : 'token'
  return unauthorized(`the ${what} is no longer valid${why === undefined ? '' : `: ${why}`}`)
}
