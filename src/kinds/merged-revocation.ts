// Builds the TokenRevocations of the server: one per access key, key owner and team (D33).
// Later revocations are merged into the existing object, so their number does not grow with the number of changes.

import type { Companion } from '../api/admission.ts'
import { type JsonObject, type Resource, timestamp } from '../api/object.ts'
import { issuerGroup } from './machine-key.ts'
import { type RevocationSpec, type Times, TokenRevocation, timesOf, tokenLifetime } from './token-revocation.ts'

/** Label of revocations of one access key: a digest of the key's owner. Limits their number per owner. */
export const ownerLabel = 'platform.sh/revocation-owner'
/** With more revocations than this for one owner, one object revokes all tokens of the owner. */
const maxKeys = 100
/**
 * With more names, or bytes of names, than this for one team, one object revokes all tokens with the group of the team.
 */
const maxNames = 500
const maxBytes = 64 * 1024

/** The revocation of all keys of an owner, by the value of the label. */
export const ownerRevocationName = (owner: string) => `revoked-owner-${owner}`

export type OwnedKey = {
  readonly uid: string
  readonly user?: string | undefined
  readonly team?: string | undefined
  readonly subject?: string | undefined
}

type Loss = {
  readonly reason: string
  /** Revokes tokens issued until then. Defaults to now. */
  readonly notBefore?: string | undefined
  /** Requests and streams that use the access key itself continue. */
  readonly tokensOnly?: boolean | undefined
}

export type KeyRevocationDependencies = { readonly now: () => number; readonly digest: (text: string) => string }

export function keyRevocation(
  key: OwnedKey,
  { reason, notBefore, tokensOnly }: Loss,
  { now, digest }: KeyRevocationDependencies,
): Companion {
  const [, , name] = ownerOf(key)
  const value = ownerValue(key, digest)
  const times = timesOf(now(), { notBefore })
  const one = {
    metadata: { name: `revoked-key-${key.uid}`, labels: { [ownerLabel]: value } },
    spec: { ...times, keyUID: key.uid, reason, ...(tokensOnly ? { tokensOnly } : {}) },
  }
  const instead = ownerRevocation(
    key,
    `many access keys of ${name} were changed or deleted`,
    { now, digest },
    notBefore,
  )
  return {
    kind: TokenRevocation,
    object: one,
    merge: stored => latest(stored, one),
    limit: { label: ownerLabel, value, max: maxKeys, instead },
  }
}

const ownerValue = (key: OwnedKey, digest: KeyRevocationDependencies['digest']) => {
  const [kind, username] = ownerOf(key)
  return digest(`${kind}:${username}`).slice(0, 40)
}

/** Revokes all tokens of the owner of a key. */
export function ownerRevocation(
  key: OwnedKey,
  reason: string,
  { now, digest }: KeyRevocationDependencies,
  notBefore?: string,
): Companion {
  const [, username] = ownerOf(key)
  const whole = {
    metadata: { name: ownerRevocationName(ownerValue(key, digest)) },
    spec: { ...timesOf(now(), { notBefore }), users: [username], reason },
  }
  return { kind: TokenRevocation, object: whole, merge: stored => latest(stored, whole) }
}

/** Revokes all tokens of machines of an entry of auth.yaml. */
export function issuerRevocation(entry: string, { now, digest }: KeyRevocationDependencies): Companion {
  const reason = `the issuer ${entry} was removed or changed in auth.yaml`
  const whole = {
    metadata: { name: `revoked-issuer-${digest(entry).slice(0, 40)}` },
    spec: { ...timesOf(now()), groups: [issuerGroup(entry)], reason },
  }
  return { kind: TokenRevocation, object: whole, merge: stored => latest(stored, whole) }
}

/** The type of the owner, the username in its tokens, and a printable name. */
function ownerOf({ user, team, subject = '' }: OwnedKey): readonly [kind: string, username: string, words: string] {
  if (user) return ['user', user, `user ${user}`]
  return team ? ['team', teamGroup(team), `team ${team}`] : ['subject', subject, `subject ${subject}`]
}

export const teamGroup = (team: string) => `platform:team:${team}`

type Written = { readonly metadata: JsonObject; readonly spec: JsonObject & Times }

/** Both times only increase, so that the merged object revokes everything that the earlier one did. */
function latest(stored: Resource, { metadata, spec }: Written): JsonObject | undefined {
  const before = (stored.spec ?? {}) as RevocationSpec
  const times = latestTimes(before, spec)
  if (!spec.tokensOnly) return { metadata, spec: { ...spec, ...times } }
  if (times.notBefore === before.notBefore && times.until === before.until) return undefined
  // With the same uid, gateways do not treat it as a new revocation, which would close streams of access keys.
  const { uid = '' } = stored.metadata
  const { tokensOnly: _, ...rest } = spec
  return {
    metadata: { ...metadata, uid },
    spec: { ...rest, ...times, ...(before.tokensOnly ? { tokensOnly: true } : {}) },
  }
}

const later = (one: string | undefined, other: string) =>
  one !== undefined && Date.parse(one) > Date.parse(other) ? one : other

const latestTimes = (before: RevocationSpec | undefined, { notBefore, until }: Times): Times => ({
  notBefore: later(before?.notBefore, notBefore),
  until: later(before?.until, until),
})

export type Members = { readonly users: readonly string[]; readonly groups: readonly string[] }

/**
 * Revokes tokens of these members that carry the group of the team. If `groups` contains that group, revokes all such
 * tokens.
 */
export function teamRevocation(
  { uid = '', name = '' }: Resource['metadata'],
  left: Members & { readonly reason: string },
  { now }: { readonly now: () => number },
): Companion {
  const carrying = teamGroup(name)
  const write = (stored?: Resource): JsonObject => {
    const before = stored?.spec as RevocationSpec | undefined
    const times = latestTimes(before, timesOf(now()))
    const { users, groups, since } = joined(before, left, { group: carrying, times, now: now() })
    return {
      metadata: { name: `revoked-team-${uid}` },
      spec: {
        ...times,
        ...(users.length ? { users } : {}),
        ...(groups.length ? { groups } : {}),
        ...(Object.keys(since).length ? { since } : {}),
        carrying,
        reason: left.reason,
      },
    }
  }
  return { kind: TokenRevocation, object: write(), merge: write }
}

type Joining = { readonly group: string; readonly times: Times; readonly now: number }
type Joined = { readonly users: string[]; readonly groups: string[]; readonly since: { [name: string]: string } }

/** Merges the names, each with its time. Drops a name when all tokens from before its time have expired. */
function joined(before: RevocationSpec = {}, left: Members, { group, times, now }: Joining): Joined {
  const newest = Date.parse(times.notBefore)
  const [users, groups] = [new Set(left.users), new Set(left.groups)]
  const isNew = new Set([...users, ...groups])
  const earlier = new Map(Object.entries(before.since ?? {}))
  const timeOf = (name: string) => Date.parse(earlier.get(name) ?? before.notBefore ?? times.notBefore)
  const ofAll = isNew.has(group) ? newest : before.groups?.includes(group) ? timeOf(group) : Number.NEGATIVE_INFINITY
  const since = new Map<string, string>()
  for (const [names, kept] of [
    [before.users, users],
    [before.groups, groups],
  ] as const)
    for (const name of names ?? []) {
      const time = timeOf(name)
      if (time + tokenLifetime <= now || (name !== group && time <= ofAll)) continue
      kept.add(name)
      // A user and a group with the same name share the later time.
      if (!isNew.has(name) && time < newest) since.set(name, timestamp(time))
    }
  const names = [...users, ...groups]
  return names.length > maxNames || JSON.stringify(names).length > maxBytes
    ? { users: [], groups: [group], since: {} }
    : { users: [...users], groups: [...groups], since: Object.fromEntries(since) }
}
