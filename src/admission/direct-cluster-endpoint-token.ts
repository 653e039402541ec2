// DirectClusterEndpointToken: signs a token for the caller, within the scope of their key (D31, D32).

import type { Admission } from '../api/admission.ts'
import type { Caller, Scope } from '../api/caller.ts'
import { shortDuration } from '../api/duration.ts'
import { invalid, invalidValue } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import { timestamp } from '../api/object.ts'
import { DirectClusterEndpointToken } from '../kinds/direct-cluster-endpoint-token.ts'
import { type ProjectDependencies, unknownProjects } from './unknown-projects.ts'

type Dependencies = ProjectDependencies & {
  /** The maximum lifetime of a token in seconds (D31). */
  readonly maxTokenTTL: number
  /**
   * Signs a token for the caller. `ttl` is in seconds. `expires` is in milliseconds, earlier if the key expires
   * earlier.
   */
  readonly signToken: (
    caller: Caller,
    wanted: { readonly ttl: number; readonly scope: Scope | undefined },
  ) => Promise<{ readonly token: string; readonly expires: number }>
}

const defaultTTL = 3600

export const directClusterEndpointTokenAdmission = (
  dependencies: Dependencies,
): Admission<ObjectOf<typeof DirectClusterEndpointToken>> => ({
  answer: async (next, { caller, dryRun, warn }) => {
    const { maxTokenTTL, signToken } = dependencies
    const ttl = next.spec?.ttl || defaultTTL
    if (ttl > maxTokenTTL)
      throw invalid(DirectClusterEndpointToken, '', [
        invalidValue('spec.ttl', ttl, `must be at most ${maxTokenTTL} seconds (${shortDuration(maxTokenTTL)})`),
      ])
    const sent = next.spec?.scope as Scope | undefined
    // A token without a scope gets the scope of its key (D32).
    const scope = sent && Object.keys(sent).length ? sent : caller.scope
    for (const warning of unknownProjects(dependencies, { caller, next: sent })) warn(warning)
    if (dryRun) return next
    const { token, expires } = await signToken(caller, { ttl, scope: scope && withoutDuplicates(scope) })
    warn(
      "the token is in status.token of this response and is not shown again; print it with kubectl create -o jsonpath='{.status.token}'",
    )
    return { ...next, status: { token, expirationTimestamp: timestamp(expires) } }
  },
})

/** Removes duplicates, because a cluster accepts only tokens for exactly one cluster (D31). */
const withoutDuplicates = (scope: Scope): Scope =>
  Object.fromEntries(Object.entries(scope).map(([field, value]) => [field, Array.isArray(value) ? once(value) : value]))

const once = (entries: readonly unknown[]) => [...new Map(entries.map(one => [JSON.stringify(one), one])).values()]
