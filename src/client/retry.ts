// Wraps `fetch` with retries that cannot repeat a write.

import type { Fetch } from './connect.ts'

export type RetryOptions = {
  /** Retries after the first attempt; default 4. */
  readonly tries?: number
  readonly sleep?: (milliseconds: number) => Promise<void>
  /** Between 0 and 1, for jitter. */
  readonly random?: () => number
  /** Whether a retry may succeed; default: always. */
  readonly isRetryable?: (error: unknown) => boolean
}

const minDelay = 100
const maxDelay = 10_000
const temporary = [429, 502, 503, 504]

/** Retries reads after any connection error. Retries writes only with Retry-After, which means that nothing was written (D51). */
export function retrying(fetch: Fetch, options: RetryOptions = {}): Fetch {
  const { tries = 4, sleep = pause, random = Math.random, isRetryable = () => true } = options
  return async (url, init) => {
    const isRead = (init.method ?? 'GET') === 'GET'
    for (let at = 0; ; at++) {
      const isLast = at >= tries || init.signal?.aborted === true
      const response = await fetch(url, init).catch(error => {
        if (isLast || !isRead || init.signal?.aborted || !isRetryable(error)) throw error
        return undefined
      })
      if (response && (isLast || !isTemporary(response, isRead))) return response
      const retryAfter = Number(response?.headers.get('retry-after') ?? 0) * 1000
      // A retry before Retry-After is useless, and the caller should not wait silently for minutes.
      if (response && retryAfter > maxDelay) return response
      void response?.body?.cancel().catch(() => {})
      // Jitter spreads the retries of many clients.
      const wait = minDelay * 2 ** at * (0.5 + random() / 2)
      await sleep(Math.min(maxDelay, Math.max(wait, retryAfter || 0)))
    }
  }
}

const isTemporary = ({ status, headers }: Response, isRead: boolean) =>
  temporary.includes(status) && (isRead || headers.get('retry-after') !== null)

const pause = (milliseconds: number) =>
  new Promise<void>(resolve => {
    setTimeout(resolve, milliseconds)
  })
