// A ProjectSecret that follows a SharedSecret shows its data to others: who may make it do so (D30), and which SharedSecret is meant (D61).

import { forbidden, invalid, invalidValue } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import type { Kind, Tools } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { pinnedOwner, printOwner, readSource, sourceOf, withSourceUid } from '../kinds/project-secret-source.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { teamUidsOf } from '../kinds/team-uids.ts'

/** The reference with the uid of the secret it names. An unchanged one keeps what it has: the controller pins it. */
export function pinSource(kind: Kind, next: Resource, old: Resource | undefined, tools: Tools): Resource {
  const [source, before] = [sourceOf(next), sourceOf(old)]
  if (!source) return next
  const isSameName = before?.name === source.name && before.namespace === source.namespace
  if (isSameName && before.uid === source.uid) return next
  const uid = tools.uidOf(SharedSecret, source)
  // A patch of the name alone leaves the uid of the secret that was named before.
  const isUidSent = source.uid !== undefined && (isSameName || source.uid !== before?.uid)
  if (isUidSent && source.uid !== uid)
    throw invalid(kind, next.metadata.name ?? '', [
      invalidValue('spec.sharedSecretRef.uid', source.uid, 'is not the uid of the SharedSecret with that name'),
    ])
  return withSourceUid(next, uid)
}

/** The caller, and whoever the secret belongs to, must be able to read what it follows. */
export async function checkCopy(check: GatedWrite, { source, owner }: Extract<Grant, { type: 'copy' }>): Promise<void> {
  const { kind, next, tools } = check
  const question = readSource(source)
  const lacking: string[] = []
  if (!(await tools.judge(question)).allowed) lacking.push(`user "${tools.caller.username}"`)
  if (owner.user || owner.team) {
    const as = tools.callerOf(pinnedOwner(owner, teamUidsOf(next)))
    if (!as || !tools.judgeOther(as, question).allowed) lacking.push(`the owner, ${printOwner(owner)}`)
  } else
    tools.warn('spec.owner: nobody owns this secret, so nothing is copied: the owner must be able to get the source')
  if (lacking.length)
    throw forbidden(
      kind,
      next.metadata.name ?? '',
      `spec.sharedSecretRef needs permission to get sharedsecrets "${source.name}" in the namespace "${source.namespace}"; missing for ${lacking.join(' and ')}`,
    )
}
