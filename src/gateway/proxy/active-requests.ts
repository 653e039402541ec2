// Requests in flight: ends them when their token or key is no longer valid, or when the gateway cannot verify it (D33).

import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { ApiError, unavailable } from '../../api/errors.ts'
import { noLongerValid, type Principal } from '../auth/principal.ts'
import type { Revocations } from '../auth/revocations.ts'

export interface ActiveRequests {
  /** Returns a function that removes the request. */
  enter(one: ActiveRequest): () => void
  /** Checks all requests. Called after every revocation, and every second for expiry. */
  recheck(): void
  readonly open: number
  readonly cut: number
  /** Ends long-running requests, before a shutdown. */
  endLong(): void
  /** Ends all requests. */
  close(): void
}

export type ActiveRequest = {
  readonly principal: Principal
  readonly isLong: boolean
  /** Verifies the credential again, when `principal` expires or the issuer or management API changed; absent: the request ends. */
  readonly renew?: (() => Promise<Principal> | Principal) | undefined
  /** Ends the request. A client without a response gets the reason. */
  readonly cut: (why: ApiError) => void
}

export type ActiveRequestsOptions = {
  readonly revocations: () => Pick<Revocations, 'revokedReason'> | undefined
  /** Whether the revocation feed has been silent for too long to serve anything. */
  readonly isFeedStale: () => boolean
  /** Whether the current issuer and management API verified the principal. */
  readonly isCurrent: (principal: Principal) => boolean
  readonly now: () => number
}

const recheckEvery = 1000
/** Together with the check every second, requests end within five seconds after their credential. */
const renewWithin = 3000
const retryAfter = 250

type One = Pick<ActiveRequest, 'isLong' | 'cut' | 'renew'> & { principal: Principal; isRenewing: boolean }

export function openActiveRequests({
  revocations,
  isFeedStale,
  isCurrent,
  now,
}: ActiveRequestsOptions): ActiveRequests {
  const active = new Set<One>()
  let count = 0
  const cut = (one: One, why: ApiError) => {
    count++
    end(one, why)
  }
  const recheck = () => {
    const isStale = isFeedStale()
    const known = revocations()
    for (const one of active) {
      const why = known?.revokedReason(one.principal)
      if (isStale) cut(one, unavailable('the gateway has lost contact with the revocation feed; retry later'))
      else if (why !== undefined) cut(one, noLongerValid(one.principal, why))
      else if (now() < one.principal.expires && isCurrent(one.principal)) {
        if (one.renew && now() >= (one.principal.reviewAt ?? Number.POSITIVE_INFINITY)) void renew(one)
      } else if (one.renew) void renew(one)
      else cut(one, noLongerValid(one.principal))
    }
  }
  /** The expiry of a key may have been extended, also by its use. A token's signing key may no longer belong to the issuer. */
  async function renew(one: One): Promise<void> {
    if (one.isRenewing) return
    one.isRenewing = true
    const found = await renewed(one, () => active.has(one))
    one.isRenewing = false
    if (!active.has(one)) return
    if (!found && now() < one.principal.expires && isCurrent(one.principal)) {
      one.principal = { ...one.principal, reviewAt: now() + renewWithin }
      return
    }
    if (!found)
      cut(one, unavailable('the gateway could not check whether the token or access key is still valid; retry later'))
    else if (found !== 'over' && now() < found.expires && isSame(found, one.principal)) one.principal = found
    else cut(one, noLongerValid(one.principal))
  }
  /** The cluster received the identity when the request began. A client with another identity, or fewer permissions, must send a new request. */
  const isSame = (found: Principal, before: Principal) =>
    found.keyUid === before.keyUid && isDeepStrictEqual(found.caller, before.caller)
  const end = (one: One, why: ApiError) => {
    active.delete(one)
    one.cut(why)
  }
  const shuttingDown = () => unavailable('the gateway is shutting down; retry')
  const timer = setInterval(recheck, recheckEvery).unref()
  return {
    enter({ principal, isLong, cut, renew }) {
      const one = { principal, isLong, cut, renew, isRenewing: false }
      active.add(one)
      return () => void active.delete(one)
    },
    recheck,
    get open() {
      return active.size
    },
    get cut() {
      return count
    },
    endLong() {
      for (const one of active) if (one.isLong) end(one, shuttingDown())
    },
    close() {
      clearInterval(timer)
      for (const one of active) end(one, shuttingDown())
    },
  }
}

/** Retries until there is a result; undefined: not in time. */
async function renewed({ renew }: One, isWanted: () => boolean): Promise<Principal | 'over' | undefined> {
  const late = new AbortController()
  const end = wait(renewWithin, undefined, { ref: false, signal: late.signal })
  const retry = async () => {
    while (!late.signal.aborted && isWanted()) {
      try {
        return await renew?.()
      } catch (error) {
        if (error instanceof ApiError && error.code === 401) return 'over'
      }
      await wait(retryAfter, undefined, { ref: false, signal: late.signal })
    }
    return undefined
  }
  const stopped = () => undefined
  return Promise.race([retry().catch(stopped), end.catch(stopped)]).finally(() => late.abort())
}
