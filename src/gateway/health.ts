// What a gateway says of itself to probes: alive, and ready for tokens or why not. gateway.ts opens the pages with it.

import type { Checks } from '../serving/health.ts'
import type { KeySet } from './auth/jwks.ts'
import type { Revocations } from './auth/revocations.ts'
import type { Reloads } from './config/reload.ts'

type Checked = {
  readonly keySet: Pick<KeySet, 'age'>
  readonly revocations: Pick<Revocations, 'age'>
  readonly reloads: Reloads
  readonly staleFeedReason: () => string | undefined
  readonly leaving: AbortSignal
  readonly now: () => number
}

export function checksOf({ keySet, revocations, reloads, staleFeedReason, leaving, now }: Checked): Checks {
  const ping = { name: 'ping', failure: () => undefined }
  const keys = {
    name: 'keys',
    failure: () => (keySet.age() === Number.POSITIVE_INFINITY ? 'no keys of the issuer yet' : undefined),
    about: () => heard(keySet.age()),
  }
  const feed = { name: 'revocations', failure: staleFeedReason, about: () => heard(revocations.age()) }
  // Never a failure: what was there before serves as it did, and all gateways with the same file would be gone at once.
  const config = {
    name: 'config',
    failure: () => undefined,
    about: () => {
      const { failingSince, isBehind } = reloads
      if (failingSince !== undefined)
        return `files have changed and cannot be used, for ${secondsOf(now() - failingSince)}; what was there before goes on`
      return isBehind ? 'files have changed, and are used once they rest and can be' : 'as the file says'
    },
  }
  const shutdown = { name: 'shutdown', failure: () => (leaving.aborted ? 'shutting down' : undefined) }
  return { livez: [ping], readyz: [ping, keys, feed, config, shutdown] }
}

const secondsOf = (milliseconds: number) => `${Math.round(milliseconds / 1000)} s`

/** How long ago the service was last heard about something (D33). */
const heard = (age: number) => (age === Number.POSITIVE_INFINITY ? 'never heard' : `heard ${secondsOf(age)} ago`)
