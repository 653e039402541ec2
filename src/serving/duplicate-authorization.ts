// Rejects requests with more than one Authorization header.

import { unauthorized } from '../api/errors.ts'
import type { Request } from './exchange.ts'

/** Throws 401. Node keeps the first of several headers, but a proxy in front may authenticate by the last. */
export function rejectDuplicateAuthorization({ headers, rawHeaders }: Request): void {
  if (headers.authorization === undefined) return
  let found = 0
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 13 && rawHeaders[index]?.toLowerCase() === 'authorization') found++
  if (found > 1) throw unauthorized('request has more than one Authorization header')
}
