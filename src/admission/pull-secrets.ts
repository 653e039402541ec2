// Remembers which secrets the image pull secrets of a team refer to, by uid (D61).

import type { Caller } from '../api/caller.ts'
import type { Resource } from '../api/object.ts'
import type { Decision, Question, Target } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { hasPullUids, type PullSecret, pullKey, pullTarget, pullUidsOf, withPullUids } from '../kinds/pull-secrets.ts'
import { Team } from '../kinds/team.ts'
import type { UnknownName } from './unknown-names.ts'

export type PullDependencies = {
  readonly authorize: (caller: Caller, question: Question) => Decision
  /** The uid of a SharedSecret or ProjectSecret. */
  readonly secretUid: (target: Target) => string | undefined
}

/**
 * The gate has checked new entries. An old entry refers to a new secret with the same name only if the caller may get that
 * secret. A scoped key changes nothing, because its scope does not limit the members.
 */
export function pinPullSecrets(
  { authorize, secretUid }: PullDependencies,
  { kind, next, old, request: { caller } }: GatedWrite,
  isScoped: boolean,
): { readonly object: Resource; readonly unknown: readonly UnknownName[] } {
  const entries = kind === Team ? ((next.spec?.['imagePullSecrets'] ?? []) as readonly PullSecret[]) : []
  if (kind !== Team || (entries.length === 0 && !hasPullUids(next))) return { object: next, unknown: [] }
  const before = old ? pullUidsOf(old) : {}
  const uids: { [secret: string]: string } = {}
  const stored = new Set(((old?.spec?.['imagePullSecrets'] ?? []) as readonly PullSecret[]).map(keyOf))
  const unknown: UnknownName[] = []
  for (const [index, entry] of entries.entries()) {
    const target = pullTarget(entry)
    const key = pullKey(target)
    const uid = secretUid(target)
    const known = Object.hasOwn(before, key) ? before[key] : undefined
    const mayGet = (uid === undefined || uid !== known) && authorize(caller, { verb: 'get', target }).allowed
    // Callers who may not get the secret must not learn whether it exists.
    if (uid === undefined && mayGet) {
      const what = `${target.resource} in the namespace "${target.namespace}"`
      const isStored = stored.has(key)
      unknown.push({ field: `spec.imagePullSecrets[${index}]`, what, name: target.name, isStored })
    }
    const pinned = mayGet && uid !== undefined && !isScoped ? uid : known
    if (pinned !== undefined) uids[key] = pinned
  }
  return { object: withPullUids(next, uids), unknown }
}

const keyOf = (entry: PullSecret) => pullKey(pullTarget(entry))
