// Limits guesses of access keys: an address that sent many unknown keys gets 429 for the next ones. Valid keys are never limited.

import { tooManyGuesses } from '../api/errors.ts'
import { type Addresses, openAddresses } from './client-address.ts'
import type { Request } from './exchange.ts'

export interface UnknownKeyLimiter extends Pick<Addresses, 'sourcesOf'> {
  /** The key that failures of a request are counted under; '' is exempt. */
  addressOf(request: Pick<Request, 'headers' | 'socket'>): string
  /** Whether a request with an unknown key gets 401; false: it gets 429 and is not counted. */
  mayTry(address: string): boolean
  /** Time until the next unknown key from this address gets 401; 0: now. */
  secondsLeft(address: string): number
  /**
   * An address sent an unknown or mistyped key. `share`: a factor for the limit of an address that many clients use; constant per
   * address.
   */
  failed(address: string, share?: number): void
  readonly stats: { readonly failed: number; readonly refused: number; readonly addresses: number }
}

/** Throws 429 with the time to wait. */
export function checkGuess(guard: Pick<UnknownKeyLimiter, 'mayTry' | 'secondsLeft'>, address: string): void {
  if (!guard.mayTry(address)) throw tooManyGuesses(guard.secondsLeft(address))
}

export type UnknownKeyLimiterOptions = {
  readonly now: () => number
  /** Maximum failures within `window` milliseconds. 0: unlimited. */
  readonly limit?: number
  readonly window?: number
  readonly trustedProxies?: readonly string[]
  /** Maximum number of addresses. The one with the oldest last failure is evicted first. */
  readonly maxAddresses?: number
}

/** A ring of the times of an address' last failures, as many as the limit. */
type Failures = { readonly times: Float64Array; next: number; newest: number }

export function openUnknownKeyLimiter(options: UnknownKeyLimiterOptions): UnknownKeyLimiter {
  const { now, limit = 20, window = 300_000, trustedProxies = [], maxAddresses = 10_000 } = options
  const addresses = openAddresses(trustedProxies)
  const known = new Map<string, Failures>()
  const stats = {
    failed: 0,
    refused: 0,
    get addresses() {
      return known.size
    },
  }
  /** The map is ordered by the newest failure, so entries that can be forgotten come first. */
  const forget = (time: number): void => {
    for (const [address, { newest }] of known) {
      if (known.size <= maxAddresses && newest > time - window) return
      known.delete(address)
    }
  }
  /** Milliseconds to wait. The ring's next slot has the oldest of the last failures. */
  const left = (address: string): number => {
    const failures = known.get(address)
    return failures ? (failures.times[failures.next] as number) + window - now() : 0
  }
  return {
    stats,
    sourcesOf: addresses.sourcesOf,
    addressOf: addresses.counted,
    mayTry(address) {
      if (left(address) <= 0) return true
      stats.refused++
      return false
    },
    secondsLeft: address => Math.ceil(Math.max(0, left(address)) / 1000),
    failed(address, share = 1) {
      stats.failed++
      if (address === '' || limit === 0) return
      const time = now()
      const failures = known.get(address) ?? {
        times: new Float64Array(limit * share).fill(Number.NEGATIVE_INFINITY),
        next: 0,
        newest: time,
      }
      failures.times[failures.next] = time
      failures.next = (failures.next + 1) % failures.times.length
      failures.newest = time
      known.delete(address)
      known.set(address, failures)
      forget(time)
    },
  }
}
