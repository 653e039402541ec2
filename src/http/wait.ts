// Waits that end before a request is authorized for the last time: for a future resourceVersion, and for the index of filtered lists.

import { badRequest } from '../api/errors.ts'
import type { Verb } from '../api/kind.ts'
import { type Exchange, isSet } from '../serving/exchange.ts'
import type { AuthResult } from './auth-filter.ts'
import type { ResourceInfo } from './request-info.ts'

const versioned: readonly Verb[] = ['get', 'list', 'deletecollection']

/** The version that the registry would wait for; undefined: none. A watch from a version to come is opened at once. */
function awaitedVersion({ verb, kind, subresource }: ResourceInfo, { query }: Exchange): string | undefined {
  if (query.size === 0 || !kind.stored || subresource) return undefined
  const waits = verb === 'watch' ? isSet(query, 'sendInitialEvents') : versioned.includes(verb)
  return waits ? query.get('resourceVersion') || undefined : undefined
}

type Waits = {
  readonly reachVersion: (resourceVersion: string) => Promise<void>
  readonly indexed: () => Promise<void> | undefined
}

/** Resolves when the request can be authorized for the last time; undefined: at once. */
export function waitOf(
  { reachVersion, indexed }: Waits,
  exchange: Exchange,
  info: ResourceInfo,
  { verdict }: AuthResult,
): Promise<void> | undefined {
  const version = awaitedVersion(info, exchange)
  const indexing = verdict.answer === 'only' ? indexed() : undefined
  if (version === undefined && !indexing) return undefined
  const wait = async () => {
    await indexing
    if (version !== undefined) await reachVersion(version)
    // The body of a closed request never ends, so reading it would never return.
    if (exchange.closed) throw badRequest('the client closed the request')
  }
  return wait()
}
