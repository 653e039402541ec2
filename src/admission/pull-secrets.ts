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
 * The gate has checked new entries. A stored entry keeps its secret: its author could not get a secret that was created later
 * under the same name, and the caller of an unrelated write does not mean to share it. A scoped key pins nothing, because its
 * scope does not limit the members.
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
    const isStored = stored.has(key)
    const mayGet = (uid === undefined || !isStored) && authorize(caller, { verb: 'get', target }).allowed
    // Callers who may not get the secret must not learn whether it exists.
    if (uid === undefined && mayGet) {
      const [what, name] = [target.resource.slice(0, -1), `${target.namespace}/${target.name}`]
      const hint = 'add the entry again once it exists'
      unknown.push({ field: `spec.imagePullSecrets[${index}]`, what, name, isStored, hint })
    }
    const pinned = isStored ? known : mayGet && !isScoped ? uid : undefined
    if (pinned !== undefined) uids[key] = pinned
  }
  return { object: withPullUids(next, uids), unknown }
}

const keyOf = (entry: PullSecret) => pullKey(pullTarget(entry))
