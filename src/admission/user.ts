// User: keeps usernames unique, takes over the identities of a username, and handles the `link` subresource (D63, D65).

import type { Admission } from '../api/admission.ts'
import { systemCaller } from '../api/caller.ts'
import { userEnabled, withConditions } from '../kinds/object-conditions.ts'
import { identityAnnotation, type UserIdentity, type UserObject } from '../kinds/user.ts'
import { isSameIdentity } from '../kinds/username-record.ts'
import { type LinkDependencies, linkUser } from './user-link.ts'
import { type RecordDependencies, userCompanions, usernameTaken } from './user-records.ts'

type Dependencies = RecordDependencies & LinkDependencies

export const userAdmission = (dependencies: Dependencies): Admission<UserObject> => ({
  admit: async (next, old, { caller }) => {
    if (old) return { object: next }
    const record = dependencies.usernameRecord(next.spec?.username ?? '')
    // If it is the same object, the store rejects the create with AlreadyExists.
    if (record?.user?.uid !== undefined && record.user.name !== next.metadata.name) throw usernameTaken(next)
    const { first, user } = caller === systemCaller ? takeIdentity(next) : { first: [], user: next }
    const kept = record?.identities ?? []
    // The username stays reserved for its identities after the deletion of a User (D63).
    const identities = [...kept, ...first.filter(one => !kept.some(other => isSameIdentity(one, other)))]
    return { object: identities.length ? { ...user, status: { ...user.status, identities } } : user }
  },
  observe: next => withConditions(next, [userEnabled(next.spec?.disabled === true)], dependencies.now()),
  companions: (old, next) => userCompanions(dependencies, { old, next }),
  subresources: { link: linkUser(dependencies) },
})

/** The identity that a sign-in of the server brings. */
function takeIdentity(user: UserObject): { readonly first: readonly UserIdentity[]; readonly user: UserObject } {
  const { [identityAnnotation]: written, ...annotations } = user.metadata.annotations ?? {}
  if (written === undefined) return { first: [], user }
  return {
    first: [JSON.parse(written) as UserIdentity],
    user: { ...user, metadata: { ...user.metadata, annotations } },
  }
}
