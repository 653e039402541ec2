// Who are you, at the gateway: a direct-cluster token, checked here, or an access key, which the service is asked about. gateway.ts calls it.

import { hash } from 'node:crypto'
import type { Caller } from '../api/caller.ts'
import { ApiError, unauthorized, unavailable } from '../api/errors.ts'
import { type Claims, gatewayAudience, TokenError, verifyToken } from '../auth/token.ts'
import type { Request } from '../serving/exchange.ts'
import { bearerOf, isToken } from './bearer.ts'
import type { KeySet } from './key-set.ts'
import type { Principal } from './principal.ts'

export interface Credentials {
  /** At once where it is known already. Throws 401 for what does not count, 503 where the service cannot be asked. */
  principalOf(request: Request): Principal | Promise<Principal>
  /** Forgets what the service said of access keys: something was revoked. */
  forgetReviews(): void
  readonly known: number
}

/** What the service says of an access key; undefined: it does not count. */
export type Review = (key: string) => Promise<ReviewedKey | undefined>
export type ReviewedKey = { readonly caller: Caller; readonly keyUid: string }

export type CredentialsOptions = {
  readonly issuer: () => string
  readonly keySet: Pick<KeySet, 'keyOf' | 'losses'>
  readonly review: Review
  readonly now: () => number
}

/** The one failure that may be a guess. */
export class UnknownAccessKey extends ApiError {
  constructor() {
    super(401, 'Unauthorized', 'the access key does not count: it is unknown, disabled, expired or deleted')
  }
}

type Kept = { readonly principal: Principal; readonly losses: number }

const most = 10_000
const reviewFor = 10_000
const refusedFor = 2_000
const skew = 60

export function openCredentials({ issuer, keySet, review, now }: CredentialsOptions): Credentials {
  const tokens = new Map<string, Kept>()
  const reviews = new Map<string, { readonly answer: Promise<Principal>; readonly until: number }>()
  let generation = 0

  async function verify(token: string, digest: string): Promise<Principal> {
    const { losses } = keySet
    const claims = await verifyToken(token, {
      issuer: issuer(),
      audience: gatewayAudience,
      keyOf: keySet.keyOf,
      now,
      skew,
    })
    const principal = principalIn(claims)
    keep(tokens, digest, { principal, losses })
    return principal
  }

  async function ask(key: string, tries = 3): Promise<Principal> {
    const asked = Math.floor(now() / 1000)
    const before = generation
    const found = await review(key)
    // Said before something was revoked, heard after it: ask again. Not for ever: an answer that is as new as its
    // question is judged by what was revoked like any other.
    if (before !== generation && tries > 1) return ask(key, tries - 1)
    if (!found) throw new UnknownAccessKey()
    return { ...found, jti: undefined, issued: asked, expires: Number.POSITIVE_INFINITY }
  }

  function reviewed(key: string, digest: string): Promise<Principal> {
    const kept = reviews.get(digest)
    if (kept && now() < kept.until) return kept.answer
    const answer = ask(key)
    const isOurs = () => reviews.get(digest)?.answer === answer
    keep(reviews, digest, { answer, until: now() + reviewFor })
    answer.catch(error => {
      if (!isOurs()) return
      if (error instanceof ApiError && error.code === 401) reviews.set(digest, { answer, until: now() + refusedFor })
      else reviews.delete(digest)
    })
    return answer
  }

  return {
    principalOf(request) {
      const secret = bearerOf(request)
      const digest = hash('sha256', secret, 'base64')
      const kept = tokens.get(digest)
      if (kept && kept.losses === keySet.losses) {
        if (now() < kept.principal.expires) return kept.principal
        tokens.delete(digest)
      }
      if (isToken(secret)) return verify(secret, digest).catch(refuse)
      return reviewed(secret, digest)
    },
    forgetReviews() {
      generation++
      reviews.clear()
    },
    get known() {
      return tokens.size + reviews.size
    },
  }
}

/** The oldest goes first; whoever still comes with it is checked once more. */
function keep<T>(map: Map<string, T>, digest: string, value: T): void {
  map.delete(digest)
  map.set(digest, value)
  if (map.size > most) for (const oldest of map.keys()) if (map.delete(oldest)) break
}

function refuse(error: unknown): never {
  if (error instanceof TokenError) throw unauthorized(error.message)
  if (error instanceof ApiError) throw error
  throw unavailable('the token could not be checked')
}

function principalIn({ sub, groups, jti, iat, exp, 'platform.sh': holder }: Claims): Principal {
  return {
    caller: {
      username: sub,
      groups,
      ...(holder.kind ? { identity: holder.kind } : {}),
      ...(holder.scope ? { scope: holder.scope } : {}),
    },
    keyUid: holder.key,
    jti,
    issued: iat,
    expires: (exp + skew) * 1000,
  }
}
