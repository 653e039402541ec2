// DirectClusterEndpointToken: signs a token for the caller, within the scope of their key (D31, D32).

import type { Admission } from '../api/admission.ts'
import type { Caller, Scope } from '../api/caller.ts'
import { shortDuration } from '../api/duration.ts'
import { invalid, invalidValue } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import { timestamp } from '../api/object.ts'
import { DirectClusterEndpointToken } from '../kinds/direct-cluster-endpoint-token.ts'

type Dependencies = {
  /** Most seconds a token may live (D31). */
  readonly maxTokenTTL: number
  /** Signs a token of the caller. `ttl` in seconds; `expires` in milliseconds, earlier if the key ends earlier. */
  readonly signToken: (
    caller: Caller,
    wanted: { readonly ttl: number; readonly scope: Scope | undefined },
  ) => Promise<{ readonly token: string; readonly expires: number }>
}

const defaultTTL = 3600

export const directClusterEndpointTokenAdmission = ({
  maxTokenTTL,
  signToken,
}: Dependencies): Admission<ObjectOf<typeof DirectClusterEndpointToken>> => ({
  answer: async (next, { caller, dryRun, warn }) => {
    const ttl = next.spec?.ttl || defaultTTL
    if (ttl > maxTokenTTL)
      throw invalid(DirectClusterEndpointToken, '', [
        invalidValue('spec.ttl', ttl, `must be at most ${maxTokenTTL} seconds (${shortDuration(maxTokenTTL)})`),
      ])
    const sent = next.spec?.scope as Scope | undefined
    // A token without a scope of its own has that of its key (D32).
    const scope = sent && Object.keys(sent).length ? sent : caller.scope
    if (dryRun) return next
    const { token, expires } = await signToken(caller, { ttl, scope: scope && withoutDuplicates(scope) })
    warn(
      "the token is in status.token of this answer and is never shown again: kubectl create -o jsonpath='{.status.token}' prints it",
    )
    return { ...next, status: { token, expirationTimestamp: timestamp(expires) } }
  },
})

/** A cluster that is named twice is one cluster, and a stock cluster takes only a token for exactly one (D31). */
const withoutDuplicates = (scope: Scope): Scope =>
  Object.fromEntries(Object.entries(scope).map(([field, value]) => [field, Array.isArray(value) ? once(value) : value]))

const once = (entries: readonly unknown[]) => [...new Map(entries.map(one => [JSON.stringify(one), one])).values()]
