// Decides which changes of keys and teams revoke direct-cluster tokens (D22, D33).

import type { Companion } from '../api/admission.ts'
import { isReservedName } from '../api/names.ts'
import type { Resource } from '../api/object.ts'
import { longestTokenTTL } from './direct-cluster-endpoint-token.ts'
import { loginSessionOf } from './login-session.ts'
import {
  type KeyRevocationDependencies,
  keyRevocation,
  type OwnedKey,
  ownerRevocation,
  teamGroup,
  teamRevocation,
} from './merged-revocation.ts'
import { tokenLifetime } from './token-revocation.ts'

type KeySpec = Omit<OwnedKey, 'uid'> & {
  readonly disabled?: boolean | undefined
  readonly groups?: readonly string[] | undefined
  readonly scope?: unknown
  readonly ttl?: number | undefined
  readonly ttlAfterLastActivity?: boolean | undefined
}
type KeyStatus = {
  readonly digest?: string | undefined
  readonly rotatedAt?: string | undefined
  readonly previous?: { readonly digest?: string | undefined; readonly until?: string | undefined } | undefined
}
type Key = Resource<KeySpec, KeyStatus>

type KeyDependencies = KeyRevocationDependencies & {
  /** Whether one scope is at most as wide as another (D25). */
  readonly isNoWider: (inner: unknown, outer: unknown) => boolean
}

export function revokedByKey(old: Key, next: Key | undefined, dependencies: KeyDependencies): readonly Companion[] {
  const lost = next && lostSignIn(old, next)
  // Other keys depend on the sign-in too, so all tokens of the user end. It may be kept only for them (D66).
  if (lost) return [ownerRevocation(ownedKey(old), lost, dependencies)]
  if (hasEnded(old, dependencies.now())) return []
  const reason = revocationReason(old, next, dependencies)
  if (reason !== undefined) return [keyRevocation(ownedKey(old), { reason }, dependencies)]
  const { rotatedAt, previous } = next?.status ?? {}
  const isSameOverlap = rotatedAt === old.status?.rotatedAt && previous?.digest === old.status?.previous?.digest
  // This write removes the last record of an expired overlap, so revoke its tokens now.
  return isSameOverlap ? [] : revokedByOverlap(old, dependencies)
}

/**
 * When the overlap of a rotation ends, revokes the tokens from before the rotation, which all come from the old secret
 * (D22).
 */
export function revokedByOverlap(key: Key, dependencies: KeyRevocationDependencies): readonly Companion[] {
  const { rotatedAt, previous } = key.status ?? {}
  const now = dependencies.now()
  if (!rotatedAt || !previous?.until || Date.parse(previous.until) > now || hasEnded(key, now)) return []
  if (Date.parse(rotatedAt) + tokenLifetime <= now) return []
  const reason = `access key ${key.metadata.name} was rotated`
  return [keyRevocation(ownedKey(key), { reason, notBefore: rotatedAt, tokensOnly: true }, dependencies)]
}

/** Why the sign-in of a person gives less than before. */
function lostSignIn(old: Key, next: Key): string | undefined {
  const [before, after] = [loginSessionOf(old as Resource), loginSessionOf(next as Resource)]
  if (!before || before.suspended !== undefined) return undefined
  if (!after || after.suspended !== undefined) return `the sign-in of user ${old.spec?.user} was suspended`
  return without(before.groups, after.groups).length
    ? `user ${old.spec?.user} lost groups at the identity provider`
    : undefined
}

const ownedKey = ({ metadata: { uid = '' }, spec = {} }: Key): OwnedKey => ({
  uid,
  user: spec.user,
  team: spec.team,
  subject: spec.subject,
})

function revocationReason(
  old: Key,
  next: Key | undefined,
  { now: clock, isNoWider }: KeyDependencies,
): string | undefined {
  const name = `access key ${old.metadata.name}`
  const now = clock()
  if (!next || isTerminating(next)) return `${name} was deleted`
  const [before, after] = [old.spec ?? {}, next.spec ?? {}]
  if (after.disabled) return `${name} was disabled`
  if (!isNoWider(before.scope, after.scope)) return `the scope of ${name} was narrowed`
  if (without(before.groups, after.groups).length) return `${name} lost groups`
  if (endsEarlier(old, next, now)) return `${name} ends earlier`
  return isReplaced(old.status, next.status, now) ? `${name} was replaced` : undefined
}

/** Ending a key revokes its tokens, and no token outlives the expiry of its key (D31). */
function hasEnded(key: Key, now: number): boolean {
  const { disabled, ttl, ttlAfterLastActivity } = key.spec ?? {}
  if (isTerminating(key) || disabled) return true
  return Boolean(ttl && !ttlAfterLastActivity) && earliestEnd(key) + skew <= now
}

/** Milliseconds. Gateways accept a token for a minute after its expiry, and their clocks may be slow. */
const skew = 300_000

/** A key with a sliding expiry ends later than this after every use. */
const earliestEnd = ({ metadata, spec, status }: Key) =>
  Date.parse(status?.rotatedAt ?? metadata.creationTimestamp ?? '') + (spec?.ttl ?? 0) * 1000

/** Only an end before the expiry of the youngest token revokes anything. */
function endsEarlier({ spec: before = {} }: Key, next: Key, now: number): boolean {
  const after = next.spec ?? {}
  if (!after.ttl || earliestEnd(next) >= now + longestTokenTTL * 1000) return false
  const noLongerSlides = before.ttlAfterLastActivity === true && after.ttlAfterLastActivity !== true
  return !before.ttl || after.ttl < before.ttl || noLongerSlides
}

/**
 * Whether a valid secret ends earlier than before. An overlap ends the old secret at the announced time, so it does not
 * count (D22).
 */
function isReplaced(before: KeyStatus = {}, after: KeyStatus = {}, now: number): boolean {
  const left = secretsOf(after, now)
  for (const [digest, end] of secretsOf(before, now)) {
    const isOverlap = digest === before.digest && digest === after.previous?.digest
    if (!isOverlap && (left.get(digest) ?? now) < end) return true
  }
  return false
}

/** Digests of the valid secrets, with their expiry. */
function secretsOf({ digest, previous }: KeyStatus, now: number): Map<string, number> {
  const secrets = new Map<string, number>()
  const until = Date.parse(previous?.until ?? '')
  if (previous?.digest && until > now) secrets.set(previous.digest, until)
  if (digest) secrets.set(digest, Number.POSITIVE_INFINITY)
  return secrets
}

type TeamSpec = { readonly users?: readonly string[] | undefined; readonly groups?: readonly string[] | undefined }
type Team = Resource<TeamSpec, unknown>

export function revokedByTeam(
  old: Team,
  next: Team | undefined,
  dependencies: { readonly now: () => number },
): readonly Companion[] {
  const { name = '' } = old.metadata
  const own = teamGroup(name)
  if (isTerminating(old)) return []
  if (!next || isTerminating(next))
    return [
      teamRevocation(old.metadata, { users: [], groups: [own], reason: `team ${name} was deleted` }, dependencies),
    ]
  const users = without(old.spec?.users, next.spec?.users)
  // Every token may carry a reserved group, so the group of the team is more specific (D61).
  const groups = without(old.spec?.groups, next.spec?.groups).map(group => (isReservedName(group) ? own : group))
  if (users.length + groups.length === 0) return []
  return [teamRevocation(old.metadata, { users, groups, reason: `they left team ${name}` }, dependencies)]
}

const isTerminating = ({ metadata }: { readonly metadata: Resource['metadata'] }) =>
  metadata.deletionTimestamp !== undefined

const without = (before: readonly string[] = [], after: readonly string[] = []) => {
  const kept = new Set(after)
  return before.filter(one => !kept.has(one))
}
