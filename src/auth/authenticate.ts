// Who are you: turns an Authorization header into a caller, or says exactly why not (SPEC §5, D16, D18).

import type { Caller } from '../api/caller.ts'
import { unauthorized } from '../api/errors.ts'
import { isMistyped } from '../kinds/key-format.ts'
import type { AccessKey, KeyBook } from './key-book.ts'

export type AuthenticateOptions = {
  readonly book: KeyBook
  readonly now: () => number
  readonly digest: (text: string) => string
  readonly lastActivity: (uid: string) => number | undefined
  readonly touch: (uid: string, time: number) => void
}

/** undefined header: nobody. Keys are found by digest, so no comparison of secrets takes place. */
export type Authenticate = (authorization: string | undefined) => Caller | undefined

export function authenticateWith({ book, now, digest, lastActivity, touch }: AuthenticateOptions): Authenticate {
  return authorization => {
    if (authorization === undefined) return undefined
    const secret = bearer(authorization)
    if (secret === undefined)
      throw unauthorized('malformed Authorization header: send Authorization: Bearer <ACCESS_KEY>')
    const found = digest(secret)
    const key = book.find(found)
    if (!key) throw notKnown(secret, book.wasDeleted(found))
    check(key, now(), lastActivity)
    touch(key.uid, now())
    return identityOf(key)
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

const identities = new WeakMap<AccessKey, Caller>()

/** Username and groups that come with a key (D16). A record of the book is replaced when its key changes, and so is this. */
function identityOf(key: AccessKey): Caller {
  const known = identities.get(key)
  if (known) return known
  const caller: Caller = { ...named(key), key: key.name, extra: { 'authentication.platform.sh/key': [key.name] } }
  identities.set(key, caller)
  return caller
}

function named(key: AccessKey): Pick<Caller, 'username' | 'groups'> {
  const groups = ['system:authenticated', ...key.groups]
  if (key.team) return { username: `platform:team:${key.team}`, groups: [...groups, `platform:team:${key.team}`] }
  if (key.user) return { username: key.user, groups: [...groups, `platform:user:${key.user}`] }
  return { username: key.subject ?? '', groups }
}
