// Logs failures that are retried: the first at once, repetitions at growing intervals, and the recovery.

import type { Logger } from 'pino'

export type FailureLogger = ((error: unknown) => void) & {
  /** Call after a success. Logs the recovery if the failure was logged. */
  readonly worked: () => void
}
export type ThrottledLog = (what: string) => FailureLogger

const minInterval = 60_000
const maxInterval = 600_000
/** After this time without a failure, the operation counts as recovered. */
const recoveredAfter = 60_000

export function openThrottledLog(log: Pick<Logger, 'info' | 'warn' | 'error'>, now: () => number): ThrottledLog {
  return what => {
    let message = ''
    let failed = Number.NEGATIVE_INFINITY
    let next = 0
    let wait = minInterval
    let suppressed = 0
    let since: number | undefined
    const logFailure = (error: unknown) => {
      const time = now()
      const text = error instanceof Error ? error.message : String(error)
      const isNew = text !== message || time - failed > recoveredAfter
      failed = time
      since ??= time
      if (!isNew && time < next) {
        suppressed++
        return
      }
      wait = isNew ? minInterval : Math.min(wait * 2, maxInterval)
      next = time + wait
      message = text
      const times = isNew || suppressed === 0 ? {} : { suppressed }
      suppressed = 0
      // A bug is logged with its stack.
      if (isBug(error)) log.error({ ...times, err: error }, `${what} failed, retrying`)
      else log.warn(times, `${what} failed, retrying: ${text}`)
    }
    const worked = () => {
      if (since === undefined) return
      log.info(`${what} recovered after ${Math.round((now() - since) / 1000)} s`)
      since = undefined
      message = ''
    }
    return Object.assign(logFailure, { worked })
  }
}

const isBug = (error: unknown) =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError
