// Writes the log line of a request.

import type { Logger } from 'pino'
import { ApiError } from '../api/errors.ts'
import type { Observation } from '../http/server.ts'

/** Logs failures, and every request at level debug: the audit log has the writes. Never logs a header, a body or a query. */
export function record(log: Logger, { exchange, caller, code, seconds, error }: Observation): void {
  const isBug = error !== undefined && !(error instanceof ApiError)
  if (!isBug && code < 500 && !log.isLevelEnabled('debug')) return
  const line = {
    audit: exchange.auditId,
    trace: exchange.span?.traceId,
    method: exchange.request.method,
    path: exchange.path,
    user: caller?.username,
    key: caller?.key,
    code,
    ms: Math.round(seconds * 1e4) / 10,
  }
  if (isBug) log.error({ ...line, err: error }, 'request failed')
  else if (code >= 500) log.warn(line, 'request failed')
  else log.debug(line, 'request')
}
