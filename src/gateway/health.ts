// The health checks of a gateway: liveness and readiness, with reasons.

import type { Checks } from '../serving/health.ts'
import type { KeySet } from './auth/jwks.ts'
import type { Revocations } from './auth/revocations.ts'
import type { Reloads } from './config/reload.ts'

type Checked = {
  readonly keySet: Pick<KeySet, 'age'>
  readonly revocations: Pick<Revocations, 'age'>
  readonly reloads: Reloads
  readonly staleFeedReason: () => string | undefined
  readonly shuttingDown: AbortSignal
  readonly now: () => number
  /** The state of the agent; undefined: this gateway has none. */
  readonly agent?: () => string | undefined
}

export function checksOf({ keySet, revocations, reloads, staleFeedReason, shuttingDown, now, agent }: Checked): Checks {
  const ping = { name: 'ping', failure: () => undefined }
  const keys = {
    name: 'keys',
    failure: () =>
      keySet.age() === Number.POSITIVE_INFINITY
        ? 'the gateway has not fetched the signing keys of the issuer yet'
        : undefined,
    about: () => describeAge(keySet.age()),
  }
  const feed = { name: 'revocations', failure: staleFeedReason, about: () => describeAge(revocations.age()) }
  // Never a failure: the previous configuration still works, and otherwise all gateways with the same file would stop at once.
  const config = {
    name: 'config',
    failure: () => undefined,
    about: () => {
      const { failingSince, isBehind } = reloads
      if (failingSince !== undefined)
        return `reload has been failing for ${secondsOf(now() - failingSince)}; keeping the previous configuration`
      return isBehind ? 'files have changed, reload pending' : 'up to date'
    },
  }
  // Never a failure: requests through the gateway do not need the agent.
  const agentCheck = { name: 'agent', failure: () => undefined, about: () => agent?.() ?? 'not configured' }
  const shutdown = { name: 'shutdown', failure: () => (shuttingDown.aborted ? 'shutting down' : undefined) }
  return { livez: [ping], readyz: [ping, keys, feed, config, ...(agent ? [agentCheck] : []), shutdown] }
}

const secondsOf = (milliseconds: number) => `${Math.round(milliseconds / 1000)} s`

/** The age of the last contact with the management API (D33). */
const describeAge = (age: number) =>
  age === Number.POSITIVE_INFINITY ? 'no contact yet' : `last contact ${secondsOf(age)} ago`
