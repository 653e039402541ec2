// A ProjectSecret that follows a SharedSecret: where its data comes from, and what a client may send (D30).

import { systemCaller } from '../api/caller.ts'
import { canonical } from '../api/encode.ts'
import { fieldForbidden, invalid } from '../api/errors.ts'
import type { Kind, Question, Tools } from '../api/kind.ts'
import type { Json, Ref, Resource } from '../api/object.ts'
import { teamOfGroup } from './team-uids.ts'

/** Who keeps the copy: the controller, under this name. */
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

/** Where the data comes from; undefined: it is the secret's own. */
export function sourceOf(object: Pick<Secret, 'spec'> | undefined): Source | undefined {
  const { name, namespace, uid } = object?.spec?.sharedSecretRef ?? {}
  return name ? { namespace: namespace || 'default', name, ...(uid ? { uid } : {}) } : undefined
}

/** A reference that is sent without a uid, and names the same secret as before, means the same one as before (D61). */
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

const isSame = (one: unknown, other: unknown) => canonical((one ?? null) as Json) === canonical((other ?? null) as Json)

/** The copy is the server's to write: whoever sends none, or the one that is there, leaves it; anything else is refused. */
export function keepCopy<T extends Secret>(kind: Kind, next: T, old: T | undefined, tools: Tools): T {
  const source = sourceOf(next)
  if (!source || tools.caller === systemCaller) return next
  const { data: sent, ...spec } = next.spec as Spec
  const kept = old?.spec?.data
  // Whoever may not see the copy must not find out by guessing what is in it.
  const isGuess = tools.written.some(path => path === 'spec.data' || path.startsWith('spec.data.'))
  if (isGuess || (sent !== undefined && !isSame(sent, kept ?? {})))
    throw invalid(kind, next.metadata.name ?? '', [
      fieldForbidden(
        'spec.data',
        `is the copy of SharedSecret ${source.namespace}/${source.name} that ${syncManager} keeps; leave it out, or change the SharedSecret`,
      ),
    ])
  return { ...next, spec: kept === undefined ? spec : { ...spec, data: kept } }
}

/** The owner of a secret with the uid of the team that is meant, also where the team's username stands for it (D16, D61). */
export function pinnedOwner(
  owner: Owner,
  uids: { readonly [team: string]: string },
): Owner & { readonly uid?: string } {
  const team = owner.user ? teamOfGroup(owner.user) : owner.team
  const uid = team !== undefined && Object.hasOwn(uids, team) ? uids[team] : undefined
  return uid === undefined ? owner : { ...owner, uid }
}

export const printOwner = ({ user, team }: Owner) => (user ? `user "${user}"` : `team "${team}"`)
