// Provides the current credentials and connections of a cluster to programs that send requests themselves, such as a gateway.

import type { Access } from './cluster-config.ts'
import { causeOf } from './connection-error.ts'
import { openCredentials } from './credentials.ts'
import type { TransportOptions } from './transport.ts'
import { openUpstreams, type Reach } from './upstreams.ts'

export type Dial = {
  readonly server: string
  /** The current connection and credentials for a request. Rejects with a message if there are no credentials. */
  now(): Ready | Promise<Ready>
  /** The cluster refused the credentials. Answers whether the next may be others. */
  refuse(): boolean
  /** Why a request failed, in words. */
  why(error: Error & { readonly code?: string }): string
  /** Closes idle connections now and the others after their request. Connections of `share` are closed by their opener. */
  retire(): void
}

type Ready = Reach & { readonly authorization: string | undefined }

/** Looking at files for every request would be most of the work for a small one. */
const readyFor = 1000

export function openDial(access: Access, { env, now }: Pick<TransportOptions, 'env' | 'now'>): Dial {
  const credentials = openCredentials(access, { env, now })
  const upstreams = openUpstreams(access, env)
  let kept: { readonly ready: Ready; readonly until: number } | undefined
  let refusals = 0
  const refresh = async (): Promise<Ready> => {
    const before = refusals
    const identity = await credentials.now()
    const ready = { ...upstreams.at(identity), authorization: identity.authorization }
    // Credentials that were refused in the meantime are not kept.
    if (refusals === before) kept = { ready, until: now() + readyFor }
    return ready
  }
  return {
    server: access.server,
    now: () => (kept && now() < kept.until ? kept.ready : refresh()),
    refuse() {
      kept = undefined
      refusals++
      credentials.refuse()
      return credentials.mayChange
    },
    // Clients read this, and Node's own message names addresses behind the gateway.
    why: error => causeOf(error) ?? `the connection failed${error.code ? ` (${error.code})` : ''}`,
    retire: upstreams.retire,
  }
}
