// Tells which groups a login provider or an external issuer may give to a user.

import { isReservedName } from '../../api/names.ts'
import { issuerGroup } from '../../kinds/machine-key.ts'

/** An entry of auth.yaml: its name, the URL of its issuer, and the prefixes of its usernames and groups. */
type Entry = {
  readonly name: string
  readonly url: string
  readonly prefixes: { readonly username: string; readonly groups: string }
}
/** `logins`: people sign in. `issuers`: machines send tokens, and have the group of their issuer, too. */
type Entries = { readonly logins: readonly Entry[]; readonly issuers: readonly Entry[] }

/** `linked`: the issuers of the identities of the user. The server learns the groups only when the user signs in. */
export function mayGetGroup(
  { logins, issuers }: Entries,
  username: string,
  linked: readonly string[],
): (group: string) => boolean {
  const isOfUser = ({ url, prefixes }: Entry) => linked.includes(url) || username.startsWith(prefixes.username)
  const ofMachine = issuers.filter(isOfUser)
  const prefixes = [...logins.filter(isOfUser), ...ofMachine].map(one => one.prefixes.groups)
  const ofIssuers = new Set(ofMachine.map(({ name }) => issuerGroup(name)))
  return group => ofIssuers.has(group) || (!isReservedName(group) && prefixes.some(prefix => group.startsWith(prefix)))
}
