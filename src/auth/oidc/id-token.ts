// Verifies ID tokens and logout tokens. openid-client relies on TLS to the token endpoint; here the signature counts, too.

import { hash } from 'node:crypto'
import { isObject, type JsonObject } from '../../api/object.ts'
import type { IssuerKeys } from '../jwt/issuer-keys.ts'
import { leeway, verifyJwt } from '../jwt/verify.ts'
import type { LoginConfig } from './login-config.ts'
import { ProviderError } from './provider-error.ts'

export type TokenCheck = {
  readonly config: Pick<LoginConfig, 'name' | 'url' | 'clientID'>
  readonly keys: IssuerKeys
  readonly now: () => number
}

/** Ten thousand groups fit, so that group patterns can select some of them. */
const idTokenLimits = { maxLength: 512 * 1024, maxValues: 50_000 }

const verify = (token: string, { config, keys, now }: TokenCheck, limits?: typeof idTokenLimits) =>
  verifyJwt(token, {
    issuerOf: url =>
      url === config.url ? { config: { name: config.name, audiences: [config.clientID] }, keys } : undefined,
    now,
    ...(limits ? { limits } : {}),
  })

/** Returns the claims. Throws JwtError or ProviderError. openid-client checks the nonce. */
export async function verifyIdToken(token: string, accessToken: string, check: TokenCheck): Promise<JsonObject> {
  const { claims, key } = await verify(token, check, idTokenLimits)
  const { azp, aud, at_hash: atHash } = claims
  const invalid = (message: string) =>
    new ProviderError('InvalidResponse', `provider ${check.config.name}: invalid ID token: ${message}`)
  const isShared = Array.isArray(aud) && aud.length > 1
  if (azp === undefined ? isShared : azp !== check.config.clientID)
    throw invalid('it was issued to another client (azp)')
  if (atHash !== undefined && atHash !== halfHash(accessToken, key.algorithm))
    throw invalid('it belongs to another access token (at_hash)')
  return claims
}

/** The left half of the hash that belongs to the algorithm of the signature. */
function halfHash(text: string, algorithm: string): string {
  const bytes = hash(algorithm === 'EdDSA' ? 'sha512' : `sha${algorithm.slice(-3)}`, text, 'buffer')
  return bytes.subarray(0, bytes.length / 2).toString('base64url')
}

export type LogoutToken = {
  readonly sid?: string
  readonly subject?: string
  readonly jti: string
  /** Seconds. The token is invalid from then on, so a replay cache can forget its jti. */
  readonly expires: number
}

const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'
/** Some providers send the general type. The event tells a logout token from an ID token. */
const logoutTypes = ['logout+jwt', 'jwt']
/** Seconds. */
const maxAge = 120
const maxId = 512

/** All checks of OpenID Connect Back-Channel Logout 1.0, section 2.6, except the replay of jti. Throws JwtError or ProviderError. */
export async function verifyLogoutToken(token: string, check: TokenCheck): Promise<LogoutToken> {
  const { claims, expires, type } = await verify(token, check)
  const invalid = (message: string) =>
    new ProviderError('InvalidResponse', `provider ${check.config.name}: invalid logout token: ${message}`)
  const { iat, jti, events, sid, sub, nonce } = claims
  if (type !== undefined && !logoutTypes.includes(type.toLowerCase().replace(/^application\//, '')))
    throw invalid('typ must be logout+jwt')
  if (nonce !== undefined) throw invalid('it must not have a nonce')
  if (!isObject(events) || !isObject(events[logoutEvent])) throw invalid('it is not a logout event (events)')
  if (typeof iat !== 'number') throw invalid('it has no time of issue (iat)')
  const until = Math.min(expires, iat + maxAge) + leeway
  if (until <= check.now() / 1000) throw invalid(`it is older than ${maxAge} seconds (iat)`)
  if (!isId(jti)) throw invalid('it has no valid jti')
  if ((sid !== undefined && !isId(sid)) || (sub !== undefined && !isId(sub)) || (sid ?? sub) === undefined)
    throw invalid('it needs a valid sid or sub')
  return {
    ...(sid === undefined ? {} : { sid: sid as string }),
    ...(sub === undefined ? {} : { subject: sub as string }),
    jti,
    expires: until,
  }
}

const isId = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= maxId
