// Waits until the replica is current, before a request is authenticated: reads are linearizable, and permissions as new as the data (D71).

import type { Exchange } from '../serving/exchange.ts'

/** `isAnyVersion`: the request accepts older state. Throws 503 if the state may miss revocations. undefined: nothing to wait for. */
export type Confirm = (isAnyVersion: boolean) => Promise<void> | undefined

/** Health checks must work while storage does not; the files of the console are the same for everyone. */
const exempt = /^\/(livez|readyz|healthz|console)(\/|$)/

export function confirmFor(confirm: Confirm, { method, path, query }: Exchange): Promise<void> | undefined {
  if (exempt.test(path)) return undefined
  const isRead = method === 'GET' && path.includes('/apis/')
  return confirm(isRead && query.get('resourceVersion') === '0')
}
