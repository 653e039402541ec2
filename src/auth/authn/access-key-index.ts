// The index of access keys by their digest (D13). It follows OwnedAccessKey.

import type { Scope } from '../../api/caller.ts'
import type { Resource } from '../../api/object.ts'
import type { Affects } from '../../api/permissions.ts'
import type { Resources } from '../../api/resources.ts'
import { keyId } from '../../kinds/key-rotation.ts'
import { isKnownScope } from '../../kinds/known-scope.ts'
import { type LoginSession, loginAnnotation, loginSessionOf, sessionRecordOf } from '../../kinds/login-session.ts'
import { type MachineRecord, machineRecordOf } from '../../kinds/machine-key.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { teamUidsOf } from '../../kinds/team-uids.ts'
import { startInformer } from '../../reconcile/informer.ts'

export type AccessKey = {
  readonly name: string
  readonly uid: string
  readonly digest: string
  /** The secret before the last rotation, during the overlap. */
  readonly previous: { readonly digest: string; readonly until: number } | undefined
  readonly user: string | undefined
  readonly team: string | undefined
  /** The uid of the team; undefined: the first one with the name (D61). */
  readonly teamUid: string | undefined
  readonly subject: string | undefined
  readonly groups: readonly string[]
  readonly scope: Scope | undefined
  /** False: the scope has a field that this version does not know, so the key grants nothing (D25). */
  readonly isScopeKnown: boolean
  readonly disabled: boolean
  readonly deleting: boolean
  /** Milliseconds; undefined: the key does not expire. */
  readonly ttl: number | undefined
  readonly slides: boolean
  readonly created: number
  /** Creation of the object, which a rotation does not change. */
  readonly since: number
  /** How many Users with the name of its user were deleted before the creation. */
  readonly userDeletions: number
  /** Set if a provider vouched for this key. */
  readonly session: LoginSession | undefined
  /** The uid of the key that a provider vouched for, if a caller created this key with it (D66). */
  readonly login: string | undefined
  /** Milliseconds without use after which a session ends. */
  readonly idle: number | undefined
  /** Set if the key was exchanged for a token of an external issuer. */
  readonly machine: MachineRecord | undefined
}

export interface AccessKeyIndex {
  readonly ready: Promise<void>
  find(digest: string): AccessKey | undefined
  withUid(uid: string): AccessKey | undefined
  /** The key with the sign-in that a key depends on; undefined: none, or deleted. */
  loginOf(key: AccessKey): AccessKey | undefined
  /** The groups of a key: its own, and those that the provider gave to its user. */
  groupsOf(key: AccessKey): readonly string[]
  /** Whether any key has a sign-in. */
  hasSessions(): boolean
  /** The sign-ins at a provider. */
  sessionsAt(provider: string): Iterable<AccessKey>
  /** The keys that callers created with a Login key. */
  childrenOf(uid: string): Iterable<AccessKey>
  all(): Iterable<AccessKey>
  /** The keys of a user, for questions about users without a request (D17). */
  ofUser(user: string): Iterable<AccessKey>
  /** Why a secret with this digest is no longer valid, with its key. Only for secrets that existed since the server started. */
  removed(digest: string): RemovedSecret | undefined
  stop(): void
}

export type RemovedSecret = {
  readonly reason: 'deleted' | 'rotated'
  readonly key: Pick<AccessKey, 'name' | 'user' | 'team' | 'subject'>
}
const remembered = 10_000

export type AccessKeyIndexOptions = {
  /** The longest lifetime of a key in milliseconds. It also applies to keys that are older than the setting (D18). */
  readonly maxTTL?: number | undefined
  readonly internalClient: Resources
  /** Called with whose permissions may have changed. */
  readonly changed: (affects: Affects) => void
  /** Called with uids, and with `uid/key id`, whose activity is no longer needed (D19). */
  readonly unused: (id: string) => void
  readonly failed: (error: unknown) => void
}

export function openAccessKeyIndex({
  internalClient,
  maxTTL,
  changed,
  unused,
  failed,
}: AccessKeyIndexOptions): AccessKeyIndex {
  const keys = new Map<string, AccessKey>()
  const byUid = new Map<string, AccessKey>()
  const byUser = new Map<string, Map<string, AccessKey>>()
  const bySession = new Map<string, Map<string, AccessKey>>()
  const byLogin = new Map<string, Map<string, AccessKey>>()
  const loginOf = (key: AccessKey) => (key.login === undefined ? key : byUid.get(key.login))
  const gone = new Map<string, RemovedSecret>()
  const forget = (digest: string, uid: string, reason: RemovedSecret['reason']) => {
    const key = keys.get(digest)
    if (key?.uid !== uid) return // the digest belongs to another key by now
    keys.delete(digest)
    const { name, user, team, subject } = key
    gone.set(digest, { reason, key: { name, user, team, subject } })
    if (gone.size > remembered) for (const oldest of gone.keys()) if (gone.delete(oldest)) break
  }
  const informer = startInformer({
    resources: internalClient,
    kind: OwnedAccessKey,
    keep: object => bounded(read(object), maxTTL),
    failed,
    changed: (_, now, before) => {
      for (const digest of digestsOf(before)) {
        if (now?.uid === before?.uid && digestsOf(now).includes(digest)) continue
        forget(digest, before?.uid ?? '', now?.uid === before?.uid ? 'rotated' : 'deleted')
        unused(`${before?.uid}/${keyId(digest)}`)
      }
      if (before && now?.uid !== before.uid) {
        unused(before.uid)
        byUid.delete(before.uid)
      }
      if (now) byUid.set(now.uid, now)
      move(byUser, before, now, ({ user }) => user)
      move(bySession, before, now, ({ session }) => session?.provider)
      move(byLogin, before, now, ({ login }) => login)
      for (const digest of digestsOf(now)) keys.set(digest, now as AccessKey)
      const affects = affectedBy(before, now, byUid)
      if (affects) changed(affects)
    },
  })
  return {
    ready: informer.ready,
    find: digest => keys.get(digest),
    withUid: uid => byUid.get(uid),
    loginOf: key => {
      const login = loginOf(key)
      return login?.session && login
    },
    groupsOf: key => {
      const groups = loginOf(key)?.session?.groups ?? []
      return groups.length ? [...key.groups, ...groups] : key.groups
    },
    hasSessions: () => bySession.size > 0,
    sessionsAt: provider => bySession.get(provider)?.values() ?? [],
    childrenOf: uid => byLogin.get(uid)?.values() ?? [],
    all: () => byUid.values(),
    ofUser: user => byUser.get(user)?.values() ?? [],
    removed: digest => (keys.has(digest) ? undefined : gone.get(digest)),
    stop: informer.stop,
  }
}

type Groups = Map<string, Map<string, AccessKey>>

function move(
  groups: Groups,
  before: AccessKey | undefined,
  now: AccessKey | undefined,
  groupOf: (key: AccessKey) => string | undefined,
): void {
  const [from, to] = [before && groupOf(before), now && groupOf(now)]
  const members = from ? groups.get(from) : undefined
  members?.delete(before?.uid ?? '')
  if (from && members?.size === 0) groups.delete(from)
  if (now && to) groups.set(to, (groups.get(to) ?? new Map<string, AccessKey>()).set(now.uid, now))
}

/**
 * A new key changes no open request. Groups of keys count for their user also without the key (D17), and those of a sign-in for
 * the keys that depend on it. undefined: nobody is affected.
 */
function affectedBy(
  before: AccessKey | undefined,
  now: AccessKey | undefined,
  byUid: ReadonlyMap<string, AccessKey>,
): Affects | undefined {
  const withGroups = [before, now].flatMap(key =>
    key?.user && (key.groups.length || key.session || key.login) ? [key.user] : [],
  )
  if (!before && !withGroups.length) return undefined
  return ({ keyUid, username }) =>
    withGroups.includes(username) ||
    (before !== undefined && keyUid !== undefined && (keyUid === before.uid || byUid.get(keyUid)?.login === before.uid))
}

const bounded = (key: AccessKey, most: number | undefined): AccessKey =>
  most === undefined ? key : { ...key, ttl: Math.min(key.ttl ?? most, most) }

const digestsOf = (key: AccessKey | undefined): readonly string[] =>
  key ? [key.digest, key.previous?.digest ?? ''].filter(Boolean) : []

function read(object: Resource): AccessKey {
  const { metadata, spec = {}, status = {} } = object
  const record = sessionRecordOf(object)
  const { user, team, subject, groups, scope, disabled, ttl, ttlAfterLastActivity } = spec as {
    scope?: Scope
    user?: string
    team?: string
    subject?: string
    groups?: string[]
    disabled?: boolean
    ttl?: number
    ttlAfterLastActivity?: boolean
  }
  const kept = status as {
    digest?: string
    rotatedAt?: string
    previous?: { digest: string; until: string }
    userDeletions?: number
  }
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    digest: kept.digest ?? '',
    previous: kept.previous && { digest: kept.previous.digest, until: Date.parse(kept.previous.until) },
    user,
    team,
    teamUid: team === undefined ? undefined : teamUidsOf({ metadata })[team],
    subject,
    groups: groups ?? [],
    scope,
    isScopeKnown: isKnownScope(scope),
    disabled: disabled === true,
    deleting: metadata.deletionTimestamp !== undefined,
    ttl: ttl ? ttl * 1000 : undefined,
    slides: ttlAfterLastActivity === true,
    created: Date.parse(kept.rotatedAt ?? metadata.creationTimestamp ?? ''),
    since: Date.parse(metadata.creationTimestamp ?? ''),
    userDeletions: kept.userDeletions ?? 0,
    session: record && loginSessionOf(object),
    login: metadata.annotations?.[loginAnnotation],
    idle: record && record.idle * 1000,
    machine: machineRecordOf(object),
  }
}
