// Tells which groups a login provider or an external issuer may give to a user.

import { isReservedName } from '../../api/names.ts'

/** An entry of auth.yaml: the URL of its issuer, and the prefixes of its usernames and groups. */
type Entry = { readonly url: string; readonly prefixes: { readonly username: string; readonly groups: string } }

/** `issuers`: of the identities that are linked to the user. The server learns the groups only when the user signs in. */
export function mayGetGroup(
  entries: readonly Entry[],
  username: string,
  issuers: readonly string[],
): (group: string) => boolean {
  const ofUser = entries.filter(({ url, prefixes }) => issuers.includes(url) || username.startsWith(prefixes.username))
  return group => !isReservedName(group) && ofUser.some(({ prefixes }) => group.startsWith(prefixes.groups))
}
