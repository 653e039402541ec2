// Limits the time of a request. The work itself continues after a timeout response.

import { timedOut } from '../api/errors.ts'

/** Work that continues after the response; undefined: none. */
export type Work = { settled: Promise<void> | undefined }

/** Rejects after this time. `work.settled` then tells when the work ends. */
export function within<T>(milliseconds: number, working: Promise<T>, work: Work): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const over = () => {}
      work.settled = working.then(over, over)
      reject(timedOut())
    }, milliseconds)
    const settle =
      <V>(tell: (what: V) => void) =>
      (what: V) => {
        clearTimeout(timer)
        tell(what)
      }
    working.then(settle(resolve), settle(reject))
  })
}
