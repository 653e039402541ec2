// Direct-cluster tokens (D31, D32): their claims, their signature, and their verification by gateways.

import type { CryptoKey } from 'jose'
import { compactVerify } from 'jose/jws/compact/verify'
import { SignJWT } from 'jose/jwt/sign'
import type { Caller, Scope } from '../../api/caller.ts'
import { decode } from '../../api/codec.ts'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { isKnownScope } from '../../kinds/known-scope.ts'

/** The holder of a token and its permissions. `key`: uid of the access key, or id of the external token. */
export type Holder = {
  readonly kind: 'User' | 'Team' | 'Subject'
  readonly name: string
  readonly key: string
  readonly scope?: Scope
  /** The uid of the only cluster in the scope. One that is created again under its name is another (D68). */
  readonly clusterUid?: string
}

/** Whether the `key` of a token is a token of an external issuer, and not an access key. */
export const isMachineKeyId = (key: string): boolean => key.startsWith('jwt:')

export type Claims = {
  readonly iss: string
  readonly aud: readonly string[]
  readonly sub: string
  readonly groups: readonly string[]
  readonly iat: number
  readonly nbf: number
  readonly exp: number
  readonly jti: string
  readonly 'platform.sh': Holder
}

export const gatewayAudience = 'platform:direct-cluster-endpoint'
const algorithm = 'ES256'
/** A standard kube-apiserver checks neither scope nor revocation, so a token for it names one cluster and expires soon. */
const longestForCluster = 900

/** `ttl` in seconds. */
export function audiencesOf(scope: Scope | undefined, ttl: number): readonly string[] {
  const cluster = onlyCluster(scope)
  return cluster === undefined || ttl > longestForCluster
    ? [gatewayAudience]
    : [gatewayAudience, `platform:cluster:${cluster}`]
}

/** The only cluster that a scope names, if it names nothing else. */
export function onlyCluster(scope: Scope | undefined): string | undefined {
  const restrictions = Object.keys(withoutEmpty(scope ?? {}))
  const [cluster, ...more] = scope?.clusters ?? []
  const name = cluster?.cluster
  return restrictions.length === 1 && more.length === 0 && name && !name.includes('*') ? name : undefined
}

/** Empty lists and false flags are left out: clusters check which claims exist (docs/CLUSTERS.md). */
const withoutEmpty = (scope: Scope): Scope =>
  Object.fromEntries(
    Object.entries(scope).filter(([, value]) => (Array.isArray(value) ? value.length > 0 : value === true)),
  )

export type Minting = {
  readonly issuer: string
  readonly caller: Caller & { readonly keyUid: string }
  readonly scope: Scope | undefined
  readonly clusterUid?: string | undefined
  /** Milliseconds. */
  readonly now: number
  readonly expires: number
  readonly id: string
}

export function claimsOf({ issuer, caller, scope, clusterUid, now, expires, id }: Minting): Claims {
  const iat = Math.floor(now / 1000)
  const exp = Math.floor(expires / 1000)
  return {
    iss: issuer,
    aud: audiencesOf(scope, exp - iat),
    sub: caller.username,
    groups: caller.groups,
    iat,
    nbf: iat,
    exp,
    jti: id,
    'platform.sh': {
      kind: caller.identity ?? 'User',
      name: caller.username,
      key: caller.keyUid,
      ...(scope ? { scope: withoutEmpty(scope) } : {}),
      ...(clusterUid === undefined ? {} : { clusterUid }),
    },
  }
}

export function signToken(claims: Claims, key: { readonly id: string; readonly private: CryptoKey }): Promise<string> {
  return new SignJWT(claims as never).setProtectedHeader({ alg: algorithm, typ: 'JWT', kid: key.id }).sign(key.private)
}

/** The start of every token of `signToken`, and the length of its signature. Recognizes a token without decoding it. */
const begun = Buffer.from(`{"alg":"${algorithm}","typ":"JWT","kid":`).toString('base64url')
const ours = new RegExp(`^${begun}[\\w-]+\\.[\\w-]+\\.[\\w-]{86}$`)

/**
 * Whether it looks like a direct-cluster token. No access key looks like one by chance, so an error that says so does not help to
 * guess keys.
 */
export const isTokenLike = (secret: string): boolean => ours.test(secret)

export type Verifying = {
  readonly issuer: string
  readonly audience: string
  /** The issuer's public key with this id, if there is one. */
  readonly keyOf: (id: string) => Promise<CryptoKey | undefined>
  readonly now: () => number
}

/** Allowed clock difference in seconds, for a token that is not valid yet and for one that has expired (D73). */
const skew = 60
export const expiryLeeway = 5

/** Why a token is invalid. The message contains no part of the token. */
export class TokenError extends Error {}

/** A token with a valid signature that has expired. The audit log names its user. */
export class ExpiredToken extends TokenError {
  readonly claims: Claims
  constructor(claims: Claims) {
    super(expired)
    this.claims = claims
  }
}

const expired = 'the token has expired'

const longest = 16 * 1024
const shape = /^[\w-]+\.[\w-]+\.[\w-]+$/
const known = ['alg', 'typ', 'kid']

/** Throws TokenError. Makes all checks without cryptography first. */
export async function verifyToken(token: string, options: Verifying): Promise<Claims> {
  if (token.length > longest) throw new TokenError(`the token is longer than ${longest} bytes`)
  if (!shape.test(token)) throw new TokenError('the token is not a JWT: it must have three parts')
  const [head = '', body = ''] = token.split('.')
  const id = readHeader(partOf(head, 'header'))
  const claims = readClaims(partOf(body, 'claims'))
  checkClaims(claims, options)
  // Claims are true only with a valid signature, so it decides whose expired token it is.
  const isExpired = claims.exp + expiryLeeway <= options.now() / 1000
  const finding = options.keyOf(id)
  const key = await (isExpired ? finding.catch(() => undefined) : finding)
  if (!key)
    throw new TokenError(isExpired ? expired : 'the token is signed with a key that the issuer does not publish')
  await compactVerify(token, key, { algorithms: [algorithm] }).catch(() => {
    throw new TokenError('the signature of the token is invalid')
  })
  if (isExpired) throw new ExpiredToken(claims)
  return claims
}

/** Rejects duplicate keys, because other parsers may read the other value. */
function partOf(part: string, what: string): JsonObject {
  try {
    const { value, duplicates } = decode(Buffer.from(part, 'base64url'))
    if (isObject(value) && duplicates.length === 0) return value
  } catch {}
  throw new TokenError(`malformed token: its ${what} must be a JSON object without duplicate keys`)
}

/** Returns the id of the key. Rejects headers that refer to other keys or to critical extensions. */
function readHeader({ alg, typ, kid, ...rest }: JsonObject): string {
  if (alg !== algorithm) throw new TokenError(`the token is not signed with ${algorithm}`)
  if (typ !== 'JWT') throw new TokenError('the token is not of type JWT')
  if (Object.keys(rest).length) throw new TokenError(`the header of the token must contain only ${known.join(', ')}`)
  if (typeof kid !== 'string' || !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(kid))
    throw new TokenError('the token has no valid key id (kid)')
  return kid
}

function readClaims(claims: JsonObject): Claims {
  const { aud, iss, sub, groups, iat, nbf, exp, jti } = claims
  const holder = claims['platform.sh']
  const isWhole =
    typeof iss === 'string' &&
    isTexts(aud) &&
    typeof sub === 'string' &&
    sub !== '' &&
    isTexts(groups) &&
    [iat, nbf, exp].every(time => Number.isSafeInteger(time)) &&
    typeof jti === 'string' &&
    isObject(holder) &&
    typeof holder.key === 'string' &&
    typeof holder.name === 'string' &&
    (holder.scope === undefined || isObject(holder.scope)) &&
    (holder.clusterUid === undefined || typeof holder.clusterUid === 'string')
  if (!isWhole) throw new TokenError('the token lacks a required claim, or a claim has the wrong type')
  // Ignoring an unknown restriction would lift it (D25).
  if (!isKnownScope(holder.scope))
    throw new TokenError('the scope of the token has a field that this gateway does not know; upgrade the gateway')
  return claims as unknown as Claims
}

const isTexts = (value: Json | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every(one => typeof one === 'string')

function checkClaims({ iss, aud, exp, nbf, iat }: Claims, { issuer, audience, now }: Verifying): void {
  const seconds = now() / 1000
  if (iss !== issuer) throw new TokenError('the token is from another issuer')
  if (!aud.includes(audience)) throw new TokenError(`the token is not for the audience ${audience}`)
  if (Math.max(nbf, iat) - skew > seconds) throw new TokenError('the token is not valid yet')
  if (exp <= iat) throw new TokenError('the token expires before it was issued')
}
