// The issuer of direct-cluster tokens (D31): signs tokens for holders of access keys and publishes the keys to verify them.

import type { Caller, Scope } from '../../api/caller.ts'
import { unavailable } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import type { SigningKeys } from './signing-keys.ts'
import { claimsOf, signToken } from './token.ts'

export interface Issuer {
  sign(caller: Caller, wanted: Wanted): Promise<{ readonly token: string; readonly expires: number }>
  /** OpenID Connect discovery, and the key set it points to. */
  metadata(): JsonObject
  keySet(): JsonObject
}

type Wanted = { readonly ttl: number; readonly scope: Scope | undefined }

export const metadataPath = '/.well-known/openid-configuration'
export const keySetPath = '/.well-known/jwks.json'

export type IssuerOptions = {
  /** The public base URL; known once the server listens. */
  readonly url: () => string
  readonly keys: SigningKeys
  /** The expiry of the caller's secret, if known; undefined: never. */
  readonly keyEnds: (caller: Caller) => number | undefined
  readonly now: () => number
  readonly uuid: () => string
}

export function openIssuer({ url, keys, keyEnds, now, uuid }: IssuerOptions): Issuer {
  return {
    async sign(caller, { ttl, scope }) {
      const key = await keys.current()
      if (!key) throw unavailable('there is no signing key yet; try again')
      const { keyUid = '' } = caller
      const expires = Math.min(now() + ttl * 1000, keyEnds(caller) ?? Number.POSITIVE_INFINITY)
      const claims = claimsOf({
        issuer: url(),
        caller: { ...caller, keyUid },
        scope,
        now: now(),
        expires,
        id: uuid(),
      })
      return { token: await signToken(claims, key), expires: claims.exp * 1000 }
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
