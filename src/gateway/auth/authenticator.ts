// Authenticates requests at the gateway: verifies direct-cluster tokens, and has access keys reviewed by the management API.

import { hash } from 'node:crypto'
import { ApiError, unauthorized, unavailable } from '../../api/errors.ts'
import {
  type Claims,
  ExpiredToken,
  expiryLeeway,
  gatewayAudience,
  TokenError,
  verifyToken,
} from '../../auth/tokens/token.ts'
import type { Request } from '../../serving/exchange.ts'
import { bearerOf, isToken } from './bearer-token.ts'
import type { KeySet } from './jwks.ts'
import { type Principal, RejectedToken } from './principal.ts'
import { keep, openReviewCache, type ReviewCacheOptions } from './token-review-cache.ts'

export interface Credentials {
  /**
   * Returns at once if the credential is cached. `checkGuess` throws 429 if the address has sent too many unknown keys. Throws 401
   * for an invalid credential, and 429 or 503 if the management API is unavailable.
   */
  principalOf(request: Request, checkGuess?: () => void): Principal | Promise<Principal>
  /** Whether the current issuer and management API verified the principal. Otherwise it must be verified again. */
  isCurrent(principal: Principal): boolean
  readonly known: number
}

export type CredentialsOptions = ReviewCacheOptions & {
  readonly issuer: () => string
  readonly keySet: Pick<KeySet, 'keyOf' | 'keyChanges'>
  /** The key that reviews of access keys are counted under. */
  readonly addressOf: (request: Request) => string
}

export function openCredentials(options: CredentialsOptions): Credentials {
  const { issuer, keySet, addressOf, now } = options
  const tokens = new Map<string, Principal>()
  const reviews = openReviewCache(options)

  async function verify(token: string, digest: string, isAgain = false): Promise<Principal> {
    const { keyChanges } = keySet
    const from = issuer()
    const checks = { issuer: from, audience: gatewayAudience, keyOf: keySet.keyOf, now }
    const claims = await verifyToken(token, checks).catch(error => {
      // The lookup used a key set that was replaced meanwhile; the current one may contain the key.
      if (keySet.keyChanges === keyChanges || isAgain) throw error
      return undefined
    })
    if (!claims) return verify(token, digest, true)
    // The key may have been removed during the lookup.
    if (keySet.keyChanges !== keyChanges) return verify(token, digest, isAgain)
    const principal = { ...principalIn(claims), from, generation: keyChanges }
    keep(tokens, digest, principal)
    return principal
  }

  return {
    principalOf(request, checkGuess) {
      const secret = bearerOf(request)
      const digest = hash('sha256', secret, 'base64')
      const kept = tokens.get(digest)
      if (kept?.generation === keySet.keyChanges) {
        if (now() < kept.expires) return kept
        tokens.delete(digest)
      }
      if (isToken(secret)) return verify(secret, digest).catch(refuse)
      return reviews.of(secret, digest, { address: addressOf(request), checkGuess })
    },
    isCurrent: ({ jti, generation }) => generation === (jti === undefined ? reviews.generation : keySet.keyChanges),
    get known() {
      return tokens.size + reviews.known
    },
  }
}

function refuse(error: unknown): never {
  if (error instanceof ExpiredToken) throw new RejectedToken(error.message, principalIn(error.claims))
  if (error instanceof TokenError) throw unauthorized(error.message)
  if (error instanceof ApiError) throw error
  throw unavailable('the gateway could not check the token; retry later')
}

function principalIn(claims: Claims): Omit<Principal, 'from' | 'generation'> {
  const { sub, groups, jti, iat, exp, 'platform.sh': holder } = claims
  return {
    caller: {
      username: sub,
      groups,
      ...(holder.kind ? { identity: holder.kind } : {}),
      ...(holder.scope ? { scope: holder.scope } : {}),
    },
    keyUid: holder.key,
    clusterUid: holder.clusterUid,
    jti,
    issued: iat,
    expires: (exp + expiryLeeway) * 1000,
  }
}
