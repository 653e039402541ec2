// Limits anonymous sign-in requests: per address and in total, in windows of time.

import { ApiError } from '../../api/errors.ts'

export type RateLimitOptions = {
  readonly now: () => number
  /** Requests of one address in a window. */
  readonly perAddress: number
  /** Requests of all addresses in a window. */
  readonly total: number
  /** Milliseconds. Default: a minute. */
  readonly window?: number
}

/** Throws 429. '' is the address of the local machine, for which only the total counts. */
export function openRateLimit({
  now,
  perAddress,
  total,
  window = 60_000,
}: RateLimitOptions): (address: string) => void {
  let since = now()
  let all = 0
  // At most `total` addresses.
  let counts = new Map<string, number>()
  return address => {
    const time = now()
    if (time - since >= window || time < since) {
      since = time
      all = 0
      counts = new Map()
    }
    const count = (counts.get(address) ?? 0) + 1
    if (all >= total || (address !== '' && count > perAddress)) throw tooMany(Math.ceil((since + window - time) / 1000))
    counts.set(address, count)
    all++
  }
}

const tooMany = (seconds: number) =>
  new ApiError(429, 'TooManyRequests', `too many sign-in requests; retry in ${seconds} s`, {
    details: { retryAfterSeconds: seconds },
  })
