// Logs failures that are retried: the first at once, repetitions at growing intervals, and the recovery.

import type { Logger } from 'pino'

export type Complaint = ((error: unknown) => void) & {
  /** Call after a success. Logs the recovery if the failure was logged. */
  readonly worked: () => void
}
export type Complaints = (what: string) => Complaint

const soonest = 60_000
const longest = 600_000
/** After this time without a failure, the operation counts as recovered. */
const quiet = 60_000

export function openThrottledLog(log: Pick<Logger, 'info' | 'warn' | 'error'>, now: () => number): Complaints {
  return what => {
    let message = ''
    let failed = Number.NEGATIVE_INFINITY
    let next = 0
    let wait = soonest
    let untold = 0
    let since: number | undefined
    const complain = (error: unknown) => {
      const time = now()
      const said = error instanceof Error ? error.message : String(error)
      const isNew = said !== message || time - failed > quiet
      failed = time
      since ??= time
      if (!isNew && time < next) {
        untold++
        return
      }
      wait = isNew ? soonest : Math.min(wait * 2, longest)
      next = time + wait
      message = said
      const times = isNew || untold === 0 ? {} : { untold }
      untold = 0
      // A bug is logged with its stack.
      if (isBug(error)) log.error({ ...times, err: error }, `${what} failed; trying again`)
      else log.warn(times, `${what} failed; trying again: ${said}`)
    }
    const worked = () => {
      if (since === undefined) return
      log.info(`${what} works again, after ${Math.round((now() - since) / 1000)} s`)
      since = undefined
      message = ''
    }
    return Object.assign(complain, { worked })
  }
}

const isBug = (error: unknown) =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError
