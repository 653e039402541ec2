// Verifies a token of an external issuer: form, issuer, signature, audience and times (D67).
// Claims of the token decide nothing before its signature is verified, except which issuer's keys to try.

import { compactVerify } from 'jose/jws/compact/verify'
import { decode } from '../../api/codec.ts'
import { shortDuration } from '../../api/duration.ts'
import { isObject, type JsonObject } from '../../api/object.ts'
import type { IssuerConfig } from './auth-config.ts'
import { algorithms, type IssuerKeys, KeysUnavailable, type PublishedKey } from './issuer-keys.ts'
import { isEncrypted, isSigned, maxTokenLength } from './token-form.ts'

export type Issuer = { readonly config: IssuerConfig; readonly keys: IssuerKeys }

/** The parts of an issuer that verification needs. */
export type TokenSource = {
  readonly config: Pick<IssuerConfig, 'name' | 'audiences'> & Partial<Pick<IssuerConfig, 'maxTokenLifetime'>>
  readonly keys: IssuerKeys
}

export type VerifiedToken<I extends TokenSource> = {
  readonly issuer: I
  readonly key: PublishedKey
  readonly claims: JsonObject
  /** Seconds. */
  readonly expires: number
  /** The header typ. */
  readonly type: string | undefined
}

/**
 * Why a token is rejected. The message contains nothing of the token.
 * `isGuess`: nobody vouched for it, so it counts as a guess. Otherwise its signature is valid, or could not be checked.
 */
export class JwtError extends Error {
  readonly isGuess: boolean
  constructor(message: string, isGuess: boolean) {
    super(message)
    this.isGuess = isGuess
  }
}

/** The signature is valid, and a claim is not. */
export class RejectedClaims extends JwtError {
  readonly claims: JsonObject
  constructor(message: string, claims: JsonObject) {
    super(message, false)
    this.claims = claims
  }
}

/** The keys of the issuer could not be fetched. */
export class NoIssuerKeys extends JwtError {}

/** Seconds that the clocks of issuer and server may be apart (D73). */
export const leeway = 5
const defaultLimits = { maxLength: maxTokenLength, maxValues: 5000 }
/** The deepest claim. */
const maxDepth = 20

const guess = (message: string) => new JwtError(message, true)
const rejected = (message: string) => new JwtError(message, false)

export type VerifyOptions<I extends TokenSource> = {
  /** The issuer with exactly this URL. An unknown one causes no request. */
  readonly issuerOf: (url: string) => I | undefined
  readonly now: () => number
  /** Called with the configured issuer that the token names, before anything is verified. */
  readonly named?: (issuer: I) => void
  readonly limits?: Limits
}

type Limits = {
  /** Bytes of the token. */
  readonly maxLength: number
  /** Values in its claims. */
  readonly maxValues: number
}

/** Throws JwtError. */
export async function verifyJwt<I extends TokenSource>(
  token: string,
  { issuerOf, now, named, limits = defaultLimits }: VerifyOptions<I>,
): Promise<VerifiedToken<I>> {
  const { id, algorithm, claims, type } = parse(token, limits)
  const issuer = typeof claims['iss'] === 'string' ? issuerOf(claims['iss']) : undefined
  if (!issuer) throw guess('the issuer of the token is not configured on this server')
  named?.(issuer)
  const key = await checkSignature(token, issuer, { id, algorithm })
  try {
    for (const check of Object.values(claimChecks)) check(claims, issuer.config, now())
  } catch (error) {
    throw error instanceof JwtError ? new RejectedClaims(error.message, claims) : error
  }
  return { issuer, key, claims, expires: Number(claims['exp']), type }
}

/** The checks of signed claims, in order. Each throws JwtError. */
export const claimChecks = { audience: checkAudience, times: checkTimes, lifetime: checkLifetime } as const

type SignedWith = { readonly id: string | undefined; readonly algorithm: string }

/** Throws JwtError. */
export async function checkSignature(
  token: string,
  issuer: TokenSource,
  { id, algorithm }: SignedWith,
): Promise<PublishedKey> {
  const key = await keyOf(issuer, id, algorithm)
  await compactVerify(token, key.key, { algorithms: [...algorithms] }).catch(() => {
    throw guess('the signature of the token is invalid')
  })
  return key
}

/** Reads a token without verifying it. Throws JwtError. */
export function parse(token: string, { maxLength, maxValues }: Limits = defaultLimits) {
  if (token.length > maxLength) throw guess(`the token is longer than ${maxLength} bytes`)
  if (isEncrypted(token)) throw guess('encrypted tokens are not supported; send a signed token (JWS)')
  if (!isSigned(token)) throw guess('malformed token: a JWT has three parts')
  const [head = '', body = ''] = token.split('.')
  const { alg, kid, crit, cty, b64, typ } = partOf(head, 'header', maxValues)
  if (typeof alg !== 'string' || !(algorithms as readonly string[]).includes(alg))
    throw guess(`the algorithm of the token is not allowed; use one of ${algorithms.join(', ')}`)
  if (crit !== undefined || b64 !== undefined) throw guess('tokens with critical header extensions are not supported')
  if (typeof cty === 'string' && /jwt$/i.test(cty)) throw guess('nested tokens are not supported')
  if (kid !== undefined && typeof kid !== 'string') throw guess('malformed token: kid must be a string')
  const type = typeof typ === 'string' ? typ : undefined
  return { id: kid, algorithm: alg, claims: partOf(body, 'claims', maxValues), type }
}

/** A duplicate key is an error, because others may read the other value. */
function partOf(part: string, what: string, maxValues: number): JsonObject {
  try {
    const { value, duplicates } = decode(Buffer.from(part, 'base64url'), { maxValues, maxDepth })
    if (isObject(value) && duplicates.length === 0) return value
  } catch {}
  throw guess(`malformed token: its ${what} must be a JSON object without duplicate keys`)
}

async function keyOf({ config, keys }: TokenSource, id: string | undefined, algorithm: string): Promise<PublishedKey> {
  try {
    const key = await keys.keyFor(id, algorithm)
    if (key) return key
  } catch (error) {
    if (!(error instanceof KeysUnavailable)) throw error
    throw new NoIssuerKeys(`the keys of issuer ${config.name} could not be fetched; retry later`, false)
  }
  throw guess(`the token is signed with a key that issuer ${config.name} does not publish`)
}

export const audiencesIn = ({ aud }: JsonObject): string[] => [aud].flat().filter(one => typeof one === 'string')

function checkAudience(claims: JsonObject, { audiences, name }: TokenSource['config']): void {
  if (audiencesIn(claims).some(one => audiences.includes(one))) return
  throw rejected(`the token has none of the audiences that are configured for issuer ${name}`)
}

const noExpiry = 'the token has no expiry (exp)'

function checkTimes({ exp, nbf = 0, iat = 0 }: JsonObject, _: TokenSource['config'], now: number): void {
  const seconds = now / 1000
  if (typeof exp !== 'number') throw rejected(noExpiry)
  if (typeof nbf !== 'number' || typeof iat !== 'number') throw rejected('nbf and iat of the token must be numbers')
  if (exp + leeway <= seconds) throw rejected('the token has expired')
  if (Math.max(nbf, iat) - leeway > seconds)
    throw rejected('the token is not valid yet; check the clocks of the issuer and of this server')
}

/** Without iat, the time that is left counts. */
function checkLifetime(
  { exp, iat }: JsonObject,
  { name, maxTokenLifetime = Number.POSITIVE_INFINITY }: TokenSource['config'],
  now: number,
): void {
  if (typeof exp !== 'number') throw rejected(noExpiry)
  const issued = typeof iat === 'number' ? iat : now / 1000
  if (exp - issued <= maxTokenLifetime) return
  throw rejected(
    `the lifetime of the token is longer than ${shortDuration(maxTokenLifetime)}; request a shorter one, or set maxTokenLifetime of issuer ${name}`,
  )
}
