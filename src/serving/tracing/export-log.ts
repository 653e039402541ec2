// Logs that spans cannot be sent: at most one line a minute, whatever the collector does.

import type { Logger } from 'pino'

export type ExportLog = {
  /** `reason`: one word, such as ECONNREFUSED. */
  failed(reason: string): void
  worked(): void
}

const minute = 60_000

export function openExportLog(log: Pick<Logger, 'info' | 'warn'>, now: () => number): ExportLog {
  let next = Number.NEGATIVE_INFINITY
  let suppressed = 0
  let isFailing = false
  const isDue = () => {
    if (now() < next) return false
    next = now() + minute
    return true
  }
  return {
    failed(reason) {
      if (!isDue()) return void suppressed++
      isFailing = true
      log.warn(suppressed ? { suppressed } : {}, `sending traces to the collector failed, dropping them: ${reason}`)
      suppressed = 0
    },
    worked() {
      if (!isFailing || !isDue()) return
      isFailing = false
      log.info('sending traces to the collector works again')
    },
  }
}
