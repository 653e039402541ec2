// `fetch` that tries again where nothing is lost by it. The command line and the client library put it around theirs.

import type { Fetch } from './connect.ts'

export type RetryOptions = {
  /** Further tries after the first; default 4. */
  readonly tries?: number
  readonly sleep?: (milliseconds: number) => Promise<void>
  /** Between 0 and 1. */
  readonly chance?: () => number
  /** Whether an error may be another one the next time; default: any may. */
  readonly isRetryable?: (error: unknown) => boolean
}

const first = 100
const longest = 10_000
const passing = [429, 502, 503, 504]

/**
 * Reads are tried again whatever went wrong on the way. Writes only where the server says that nothing happened: it
 * sends Retry-After then, and never else (D51).
 */
export function retrying(fetch: Fetch, options: RetryOptions = {}): Fetch {
  const { tries = 4, sleep = pause, chance = Math.random, isRetryable = () => true } = options
  return async (url, init) => {
    const isRead = (init.method ?? 'GET') === 'GET'
    for (let at = 0; ; at++) {
      const isLast = at >= tries || init.signal?.aborted === true
      const response = await fetch(url, init).catch(error => {
        if (isLast || !isRead || init.signal?.aborted || !isRetryable(error)) throw error
        return undefined
      })
      if (response && (isLast || !isPassing(response, isRead))) return response
      const asked = Number(response?.headers.get('retry-after') ?? 0) * 1000
      // Coming sooner is in vain, and nobody waits for minutes without a word.
      if (response && asked > longest) return response
      void response?.body?.cancel().catch(() => {})
      // Half of it by chance, so that many who were sent away together do not come back together.
      const wait = first * 2 ** at * (0.5 + chance() / 2)
      await sleep(Math.min(longest, Math.max(wait, asked || 0)))
    }
  }
}

const isPassing = ({ status, headers }: Response, isRead: boolean) =>
  passing.includes(status) && (isRead || headers.get('retry-after') !== null)

const pause = (milliseconds: number) =>
  new Promise<void>(resolve => {
    setTimeout(resolve, milliseconds)
  })
