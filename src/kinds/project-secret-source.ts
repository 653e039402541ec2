// Defines the source of a ProjectSecret that follows a SharedSecret, and what a client may send (D30).

import type { Question } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import { teamOfGroup } from './team-uids.ts'

/** The field manager of the controller that updates the copies. */
export const syncManager = 'project-secret-sync'

type Named = {
  readonly name?: string | undefined
  readonly namespace?: string | undefined
  readonly uid?: string | undefined
}
type Owner = { readonly user?: string | undefined; readonly team?: string | undefined }
type Spec = {
  readonly sharedSecretRef?: Named | undefined
  readonly owner?: Owner | undefined
  readonly data?: { readonly [key: string]: string } | undefined
}
type Secret = Resource<Spec, unknown>

export type Source = Ref & { readonly uid?: string | undefined }

/** The source of the data; undefined if the secret has its own data. */
export function sourceOf(object: Pick<Secret, 'spec'> | undefined): Source | undefined {
  const { name, namespace, uid } = object?.spec?.sharedSecretRef ?? {}
  return name ? { namespace: namespace || 'default', name, ...(uid ? { uid } : {}) } : undefined
}

/** A reference without a uid and with the same name refers to the same secret as before (D61). */
export function keepSourceUid<T extends Secret>(next: T, old: T | undefined): T {
  const [now, before] = [sourceOf(next), sourceOf(old)]
  const isSameName = now && before && now.name === before.name && now.namespace === before.namespace
  return isSameName && before.uid && !now.uid ? withSourceUid(next, before.uid) : next
}

export function withSourceUid<T extends Secret>(object: T, uid: string | undefined): T {
  const { uid: _, ...named } = object.spec?.sharedSecretRef ?? {}
  return { ...object, spec: { ...object.spec, sharedSecretRef: uid === undefined ? named : { ...named, uid } } }
}

export const readSource = ({ namespace, name }: Ref): Question => ({
  verb: 'get',
  target: { group: 'management.platform.sh', resource: 'sharedsecrets', namespace, name },
})

/** The owner of a secret with the uid of its team. The username of a team also refers to the team (D16, D61). */
export function pinnedOwner(
  owner: Owner,
  uids: { readonly [team: string]: string },
): Owner & { readonly uid?: string } {
  const team = owner.user ? teamOfGroup(owner.user) : owner.team
  const uid = team !== undefined && Object.hasOwn(uids, team) ? uids[team] : undefined
  return uid === undefined ? owner : { ...owner, uid }
}

export const printOwner = ({ user, team }: Owner) => (user ? `user "${user}"` : `team "${team}"`)
