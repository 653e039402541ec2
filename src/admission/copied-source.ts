// Checks permission to let a ProjectSecret follow a SharedSecret (D30), and pins the uid of the SharedSecret (D61).

import { forbidden, invalid, invalidValue } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { pinnedOwner, printOwner, readSource, sourceOf, withSourceUid } from '../kinds/project-secret-source.ts'
import { teamUidsOf } from '../kinds/team-uids.ts'
import { type ActsForDependencies, checkActsFor } from './acts-for-owner.ts'

type PinDependencies = {
  /** The uid of a SharedSecret. */
  readonly sharedSecretUid: (ref: Ref) => string | undefined
}

/** Sets the uid of the referenced secret. An unchanged reference keeps its uid, which the controller pins. */
export function pinSource(
  { sharedSecretUid }: PinDependencies,
  kind: Kind,
  next: Resource,
  old: Resource | undefined,
): Resource {
  const [source, before] = [sourceOf(next), sourceOf(old)]
  if (!source) return next
  const isSameName = before?.name === source.name && before.namespace === source.namespace
  if (isSameName && before.uid === source.uid) return next
  const uid = sharedSecretUid(source)
  // A patch that changes only the name still has the uid of the previous secret.
  const isUidSent = source.uid !== undefined && (isSameName || source.uid !== before?.uid)
  if (isUidSent && source.uid !== uid)
    throw invalid(kind, next.metadata.name ?? '', [
      invalidValue('spec.sharedSecretRef.uid', source.uid, 'is not the uid of the SharedSecret with that name'),
    ])
  return withSourceUid(next, uid)
}

export type CopyDependencies = ActsForDependencies

/**
 * The caller and the owner of the secret must both be able to read its source. The controller later checks only the owner, so
 * callers name themselves, a team that they may update, or a user whom they may impersonate. Otherwise a reader could
 * keep the copy in sync in the name of somebody else after losing access.
 */
export function checkCopy(
  dependencies: CopyDependencies,
  check: GatedWrite,
  { source, owner }: Extract<Grant, { type: 'copy' }>,
): void {
  const { authorize, callerOf } = dependencies
  const { kind, next, request } = check
  const { caller, warn } = request
  const question = readSource(source)
  const missing: string[] = []
  if (!authorize(caller, question).allowed) missing.push(`user "${caller.username}"`)
  if (owner.user || owner.team) {
    const as = callerOf(pinnedOwner(owner, teamUidsOf(next)))
    if (!as || !authorize(as, question).allowed) missing.push(`the owner, ${printOwner(owner)}`)
    checkActsFor(dependencies, check, { owner, field: 'spec.sharedSecretRef' })
  } else warn('spec.owner: the secret has no owner, so nothing is copied; the owner must be able to get the source')
  if (missing.length)
    throw forbidden(
      kind,
      next.metadata.name ?? '',
      `spec.sharedSecretRef requires permission to get sharedsecrets "${source.name}" in the namespace "${source.namespace}"; missing for ${missing.join(' and ')}`,
    )
}
