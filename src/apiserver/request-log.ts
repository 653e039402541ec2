// Writes the log line of a request.

import type { Logger } from 'pino'
import { ApiError } from '../api/errors.ts'
import type { Observation } from '../http/server.ts'

/** Logs writes and failures, and reads at level debug. Never logs a header, a body or a query. */
export function record(log: Logger, { exchange, info, caller, code, seconds, error }: Observation): void {
  const isBug = error !== undefined && !(error instanceof ApiError)
  const isWrite = info?.type === 'resource' && info.verb !== 'get' && info.verb !== 'list' && info.verb !== 'watch'
  if (!isBug && !isWrite && code < 500 && !log.isLevelEnabled('debug')) return
  const line = {
    audit: exchange.auditId,
    method: exchange.request.method,
    path: exchange.path,
    user: caller?.username,
    key: caller?.key,
    code,
    ms: Math.round(seconds * 1e4) / 10,
  }
  if (isBug) log.error({ ...line, err: error }, 'request failed')
  else if (code >= 500) log.warn(line, 'request failed')
  else if (isWrite) log.info(line, 'write')
  else log.debug(line, 'request')
}
