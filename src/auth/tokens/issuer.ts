// The issuer of direct-cluster tokens (D31): signs tokens for holders of access keys and publishes the keys to verify them.

import type { Caller, Scope } from '../../api/caller.ts'
import { unavailable } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import type { SigningKeys } from './signing-keys.ts'
import { type Claims, claimsOf, ExpiredToken, gatewayAudience, onlyCluster, signToken, verifyToken } from './token.ts'

export interface Issuer {
  sign(caller: Caller, wanted: Wanted): Promise<{ readonly token: string; readonly expires: number }>
  /**
   * The claims of a token that this issuer signed, expired or not, to name its user in the audit log. undefined: it did not sign the
   * token, or too many came in this second. A caller must not authenticate anybody by it: nothing checks the revocations.
   */
  signedClaims(token: string): Promise<Claims | undefined>
  /** OpenID Connect discovery, and the key set it points to. */
  metadata(): JsonObject
  keySet(): JsonObject
}

type Wanted = {
  readonly ttl: number
  readonly scope: Scope | undefined
  /** The uid of the only cluster of the scope; default: of the one that has its name now. */
  readonly clusterUid?: string
  /** A token that this one replaces, with its time of issue in seconds and its expiry in milliseconds. Its revocations apply. */
  readonly instead?: { readonly jti: string; readonly issued: number; readonly expires: number }
}

export const metadataPath = '/.well-known/openid-configuration'
export const keySetPath = '/.well-known/jwks.json'

/** Anybody can send tokens that need a check, so a flood of them must cost little. */
const maxChecksPerSecond = 10

export type IssuerOptions = {
  /** The public base URL; known once the server listens. */
  readonly url: () => string
  readonly keys: SigningKeys
  /** The expiry of the caller's secret, if known; undefined: never. */
  readonly keyEnds: (caller: Caller) => number | undefined
  /** The uid of a connected cluster, if there is one with this name. */
  readonly clusterUid?: (name: string) => string | undefined
  readonly now: () => number
  readonly uuid: () => string
}

export function openIssuer({ url, keys, keyEnds, clusterUid: uidOf, now, uuid }: IssuerOptions): Issuer {
  const mayCheck = perSecond(maxChecksPerSecond, now)
  return {
    async sign(caller, { ttl, scope, instead, clusterUid = uidOf?.(onlyCluster(scope) ?? '') }) {
      const key = await keys.current()
      if (!key) throw unavailable('there is no signing key yet; try again')
      const { keyUid = '' } = caller
      const latest = instead ? instead.expires : (keyEnds(caller) ?? Number.POSITIVE_INFINITY)
      const expires = Math.min(now() + ttl * 1000, latest)
      const claims = claimsOf({
        issuer: url(),
        caller: { ...caller, keyUid },
        scope,
        clusterUid,
        now: instead ? instead.issued * 1000 : now(),
        expires,
        id: instead?.jti ?? uuid(),
      })
      return { token: await signToken(claims, key), expires: claims.exp * 1000 }
    },
    async signedClaims(token) {
      if (!mayCheck()) return undefined
      const checks = { issuer: url(), audience: gatewayAudience, keyOf: keys.publicKey, now }
      return verifyToken(token, checks).catch(error => (error instanceof ExpiredToken ? error.claims : undefined))
    },
    metadata: () => ({
      issuer: url(),
      jwks_uri: `${url()}${keySetPath}`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
      claims_supported: ['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'groups', 'platform.sh'],
    }),
    keySet: () => keys.published(),
  }
}

/** Whether one more is within the limit of the current second. */
function perSecond(limit: number, now: () => number): () => boolean {
  let second = 0
  let count = 0
  return () => {
    const current = Math.floor(now() / 1000)
    count = current === second ? count + 1 : 1
    second = current
    return count <= limit
  }
}
