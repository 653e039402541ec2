// Ends a watch whose token is no longer valid with an ERROR event, as Kubernetes does.

import type { ApiError } from '../../api/errors.ts'
import { abortResponse } from '../../serving/abort-response.ts'
import type { Exchange } from '../../serving/exchange.ts'
import { statusOf } from '../../serving/respond.ts'
import type { ResponseHead } from '../../transport/upstream.ts'
import type { Route } from './routes.ts'

export type WatchErrorEvent = {
  /** Ends the response with a line. False: the response is not at the end of a line. Absent: the response is not a watch. */
  endWith?: (line: string) => boolean
}

/** Aborts the connection of a client that does not read it in time. */
const takeWithin = 500

/** False: the caller must abort the response. */
export function sendWatchError({ endWith }: WatchErrorEvent, exchange: Exchange, why: ApiError): boolean {
  const event = { type: 'ERROR', object: statusOf(why) }
  if (why.code !== 401 || !endWith?.(`${JSON.stringify(event)}\n`)) return false
  const timer = setTimeout(() => abortResponse(exchange.response), takeWithin)
  exchange.onClosed(() => clearTimeout(timer))
  return true
}

/** Whether the response is a watch in lines of JSON. */
export function isJsonWatch({ act }: Route, { status, rawHeaders }: ResponseHead): boolean {
  if (act.verb !== 'watch' || status !== 200) return false
  const headers = new Map<string, string>()
  for (let index = 0; index < rawHeaders.length; index += 2)
    headers.set((rawHeaders[index] as string).toLowerCase(), rawHeaders[index + 1] as string)
  const isPlain = !headers.has('content-encoding') && !headers.has('content-length')
  return isPlain && /^application\/json *(;|$)/i.test(headers.get('content-type') ?? '')
}
