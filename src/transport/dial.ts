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
  /** Call after the cluster rejected the credentials. Returns whether the next ones may differ. */
  refuse(): boolean
  /** Why a request failed, as text. */
  why(error: Error & { readonly code?: string }): string
  /** Closes idle connections now and the others after their request. Connections of `share` are closed by their opener. */
  retire(): void
}

type Ready = Reach & { readonly authorization: string | undefined }

/** Checking files for every request would be most of the work of a small one. */
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
    // Credentials that the cluster rejected meanwhile are not cached.
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
    // Clients see this text, and Node's own message contains addresses behind the gateway.
    why: error => causeOf(error) ?? `the connection failed${error.code ? ` (${error.code})` : ''}`,
    retire: upstreams.retire,
  }
}
