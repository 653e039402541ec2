// Who are you: turns an Authorization header into a caller, or says exactly why not (SPEC §5, D16, D18).

import type { Caller } from '../api/caller.ts'
import { unauthorized } from '../api/errors.ts'
import { isMistyped } from '../kinds/key-format.ts'
import type { AccessKey, KeyBook } from './key-book.ts'
import type { Teams } from './teams.ts'

export type AuthenticateOptions = {
  readonly book: KeyBook
  readonly teams: Teams
  readonly now: () => number
  readonly digest: (text: string) => string
  readonly lastActivity: (uid: string) => number | undefined
  readonly touch: (uid: string, time: number) => void
}

/** `quietly`: the key is not marked as used. undefined header: nobody. Keys are found by digest, so no comparison of secrets takes place. */
export type Authenticate = (authorization: string | undefined, quietly?: boolean) => Caller | undefined

export function authenticateWith({ book, teams, now, digest, lastActivity, touch }: AuthenticateOptions): Authenticate {
  const identities = new WeakMap<AccessKey, Identity>()
  return (authorization, quietly = false) => {
    if (authorization === undefined) return undefined
    const secret = bearer(authorization)
    if (secret === undefined)
      throw unauthorized('malformed Authorization header: send Authorization: Bearer <ACCESS_KEY>')
    const found = digest(secret)
    const key = book.find(found)
    if (!key) throw notKnown(secret, book.wasDeleted(found))
    check(key, now(), lastActivity)
    if (!quietly) touch(key.uid, now())
    return identityOf(key, teams, identities)
  }
}

export const missingKey = () => unauthorized('no access key was sent: send Authorization: Bearer <ACCESS_KEY>')

function notKnown(secret: string, wasDeleted: boolean) {
  if (wasDeleted) return unauthorized('access key was deleted')
  if (isMistyped(secret)) return unauthorized('malformed access key: its checksum is wrong, so it was mistyped or cut')
  return unauthorized('unknown access key')
}

function bearer(header: string): string | undefined {
  if (header.length > 4096 || header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined
  const secret = header.slice(7).trim()
  return secret === '' || secret.includes(' ') ? undefined : secret
}

function check(key: AccessKey, now: number, lastActivity: AuthenticateOptions['lastActivity']): void {
  if (key.deleting) throw unauthorized('access key was deleted')
  if (key.disabled) throw unauthorized('access key is disabled')
  if (key.ttl === undefined) return
  const since = key.slides ? (lastActivity(key.uid) ?? key.created) : key.created
  if (now >= since + key.ttl) throw unauthorized('access key expired')
}

type Identity = { readonly caller: Caller; readonly teams: number }

/** Username and groups that come with a key (D16). Kept until the key or any team changes. */
function identityOf(key: AccessKey, teams: Teams, known: WeakMap<AccessKey, Identity>): Caller {
  const kept = known.get(key)
  if (kept?.teams === teams.version) return kept.caller
  const caller: Caller = {
    ...named(key, teams),
    key: key.name,
    extra: { 'authentication.platform.sh/key': [key.name] },
    ...(key.scope ? { scope: key.scope } : {}),
  }
  known.set(key, { caller, teams: teams.version })
  return caller
}

function named(key: AccessKey, teams: Teams): Pick<Caller, 'username' | 'groups' | 'identity'> {
  const groups = ['system:authenticated', ...key.groups]
  const teamGroup = (team: string) => `platform:team:${team}`
  if (key.team) return { identity: 'Team', username: teamGroup(key.team), groups: [...groups, teamGroup(key.team)] }
  if (!key.user) return { identity: 'Subject', username: key.subject ?? '', groups }
  return {
    identity: 'User',
    username: key.user,
    groups: [...groups, `platform:user:${key.user}`, ...teams.of(key.user, groups).map(teamGroup)],
  }
}
