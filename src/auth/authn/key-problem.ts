// Decides whether an access key is valid now, and why not (D18, D22, D61, D63–D67).

import { keyExpiry } from '../../kinds/key-expiry.ts'
import type { MachineRecord } from '../../kinds/machine-key.ts'
import type { AccessKey, AccessKeyIndex } from './access-key-index.ts'
import type { TeamIndex } from './team-index.ts'
import type { UserIndex } from './user-index.ts'

export type KeyChecks = {
  readonly keyIndex: AccessKeyIndex
  readonly teams: TeamIndex
  readonly lastActivity: (uid: string) => number | undefined
  /** The sign-ins of people; absent: none is configured. */
  readonly sessions?: SessionChecks | undefined
  readonly users: Pick<UserIndex, 'problemOf' | 'isDisabled'>
  /** Connected clusters, for the keys of their agents. */
  readonly clusters: { problemOf(key: { readonly subject?: string | undefined }): string | undefined }
  /** The issuers of machines; absent: none is configured. */
  readonly machines?: { isAccepted(record: MachineRecord): boolean } | undefined
}

/** Sign-ins of people, which are refreshed while they are in use (D67). `login`: the key that a provider vouched for. */
export type SessionChecks = {
  /** Whether there is any sign-in. */
  areOpen(): boolean
  /** Why a sign-in does not count now; undefined: it does. */
  problemOf(login: AccessKey, now: number): string | undefined
  /** When a sign-in stops to count unless it is refreshed, in milliseconds; undefined: not at all. */
  endOf(login: AccessKey): number | undefined
  /** Refreshes the sign-in if that is due, without waiting. */
  used(login: AccessKey): void
  /** Waits for a refresh that is due; undefined: nothing to wait for. */
  prepare(login: AccessKey): Promise<void> | undefined
}

/** Why a key is not valid now; undefined: it is valid. */
export function problemOf(
  key: AccessKey,
  digest: string,
  now: number,
  { teams, lastActivity, keyIndex, sessions, machines, users, clusters }: KeyChecks,
): string | undefined {
  if (digest !== key.digest && now >= (key.previous?.until ?? 0)) return 'access key was rotated'
  if (key.deleting) return 'access key was deleted'
  if (key.disabled) return 'access key is disabled'
  if ((key.ttl !== undefined || key.idle !== undefined) && now >= endOf(key, lastActivity))
    return key.idle === undefined ? 'access key expired' : 'the session expired; sign in again'
  // A key of a deleted team is invalid, also if permissions are still bound to the team's name (D18).
  if (key.team && !isTeamThere(key, teams)) return 'the team of the access key does not exist'
  const ofOwner = users.problemOf(key) ?? (key.subject === undefined ? undefined : clusters.problemOf(key))
  if (ofOwner !== undefined) return ofOwner
  if (key.session || key.login !== undefined) {
    const login = keyIndex.loginOf(key)
    if (!login) return 'the sign-in of the access key ended; sign in again'
    const problem = sessions ? sessions.problemOf(login, now) : 'sign-in is not configured on this server'
    if (problem !== undefined) return problem
  }
  if (key.machine && !machines?.isAccepted(key.machine))
    return 'the issuer of the token that the access key was exchanged for was removed or changed'
  if (!key.isScopeKnown) return 'the access key has a scope that this version of the server does not know'
  return undefined
}

/** A team that was created again under the same name is another one (D61). */
function isTeamThere({ team = '', teamUid }: AccessKey, teams: TeamIndex): boolean {
  const uid = teams.uidOf(team)
  return uid !== undefined && (teamUid === undefined || teamUid === uid)
}

/** Expiry in milliseconds. A session also ends after some time without use (D64). */
export function endOf(key: AccessKey, lastActivity: KeyChecks['lastActivity']): number {
  const end = keyExpiry({ since: key.created, ttl: key.ttl, slides: key.slides }, () => lastActivity(key.uid))
  return key.idle === undefined ? end : Math.min(end, Math.max(key.created, lastActivity(key.uid) ?? 0) + key.idle)
}
