// The wait for a resourceVersion that the store has not reached. server.ts waits before it authorizes a request for the last time.

import { badRequest } from '../api/errors.ts'
import type { Verb } from '../api/kind.ts'
import { type Exchange, isSet } from '../serving/exchange.ts'
import type { ResourceInfo } from './request-info.ts'

const versioned: readonly Verb[] = ['get', 'list', 'deletecollection']

/** The version that the registry would wait for; undefined: none. A watch from a version to come is opened at once. */
export function awaitedVersion({ verb, kind, subresource }: ResourceInfo, { query }: Exchange): string | undefined {
  if (query.size === 0 || !kind.stored || subresource) return undefined
  const waits = verb === 'watch' ? isSet(query, 'sendInitialEvents') : versioned.includes(verb)
  return waits ? query.get('resourceVersion') || undefined : undefined
}

type Waiting = { readonly reachVersion: (resourceVersion: string) => Promise<void> }

export async function reachVersion(options: Waiting, exchange: Exchange, version: string): Promise<void> {
  await options.reachVersion(version)
  // The body of a request that was closed meanwhile never ends, and reading it would wait for ever.
  if (exchange.closed) throw badRequest('the client closed the request')
}
