// Checks a write again right before it is stored: the caller's permissions may have changed, or the object that gave them.

import type { Caller } from '../api/caller.ts'
import { conflict, forbidden, notFound, permissionsChanged } from '../api/errors.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { TargetCheck, WriteCheck } from '../api/resources.ts'
import type { Access, AuthResult } from './auth-filter.ts'

/** `latest` authorizes the request again, and throws if it is no longer allowed. */
export function writeCheck(
  access: Access,
  authResult: AuthResult,
  { question, kind, latest }: { readonly question: Question; readonly kind: Kind; readonly latest: () => AuthResult },
): WriteCheck {
  const { permissionVersions: versions } = access
  let version = versions.current()
  return {
    caller: () => {
      const since = version
      version = versions.current()
      const { caller } = authResult
      if (caller && access.isCurrent(caller) && !versions.isAffected(caller, since)) return
      if (!isSameCaller(latest().caller, caller)) throw permissionsChanged()
    },
    target: checkTarget(access, authResult, question, kind),
  }
}

/** Throws 409 if the permissions of the caller changed while a search ran (D70). */
export function requireUnchanged(before: AuthResult, now: AuthResult): void {
  if (before.verdict.answer !== now.verdict.answer || !isSameCaller(before.caller, now.caller))
    throw permissionsChanged()
}

/** An authenticated caller is the same object until something about it changes. An impersonated one is new for each request. */
const isSameCaller = (one: Caller | undefined, other: Caller | undefined) =>
  one === other || (one?.impersonator !== undefined && JSON.stringify(one) === JSON.stringify(other))

/**
 * Binds a write to the object that gave the right to it. The registry calls it with the object it is about to change, also
 * before a retry: another object may have the name by then, or the object another owner. undefined: a role gave the right.
 */
export function checkTarget(
  { authorizer }: Access,
  { caller, verdict }: AuthResult,
  question: Question,
  kind: Kind,
): TargetCheck | undefined {
  if (verdict.answer !== 'yes' || verdict.object === undefined || !('target' in question)) return undefined
  const { uid } = verdict.object.metadata
  const { name = '' } = question.target
  return stored => {
    if (!stored) throw notFound(kind, name)
    if (stored.metadata.uid !== uid)
      throw conflict(kind, name, 'the object was deleted and created again while the request was processed')
    if (!authorizer.decide(caller, question, stored).allowed)
      throw forbidden(kind, name, 'the object no longer grants this permission')
  }
}
