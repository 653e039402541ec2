// The index of Users by username: decides whether the keys of a user are valid (D63). It follows User and the records of deleted Users.

import type { Affects } from '../../api/permissions.ts'
import type { Resources } from '../../api/resources.ts'
import { User, type UserObject } from '../../kinds/user.ts'
import { UsernameRecord, type UsernameSpec } from '../../kinds/username-record.ts'
import { mentions } from '../../reconcile/document-words.ts'
import { startInformer } from '../../reconcile/informer.ts'
import type { AccessKey } from './access-key-index.ts'

export type UserRecord = {
  readonly name: string
  readonly uid: string
  readonly username: string
  /** Also while the User is being deleted. */
  readonly isDisabled: boolean
  /** Of the linked identities. */
  readonly issuers: readonly string[]
}

export interface UserIndex {
  readonly ready: Promise<void>
  get(username: string): UserRecord | undefined
  /** Also for users without keys, such as those of external issuers. */
  isDisabled(username: string): boolean
  /** Why the keys of a user are not valid; undefined: they are. */
  problemOf(key: KeyOfUser): string | undefined
  /** Whether a key belonged to a User that was deleted. */
  isLeftOver(key: KeyOfUser): boolean
  /** How many Users with this name were deleted. */
  deletionsOf(username: string): number
  stop(): void
}

type KeyOfUser = Pick<AccessKey, 'uid' | 'user' | 'userDeletions' | 'since' | 'session' | 'login'>

export type UserIndexOptions = {
  readonly resources: Resources
  /** Accept only keys of users that have a User. */
  readonly requireUsers: boolean
  /** Called with whose permissions may have changed. */
  readonly changed: (affects: Affects) => void
  /** Called with uids whose activity is no longer needed. */
  readonly unused: (uid: string) => void
  readonly failed: (error: unknown) => void
}

/** The user of the first start. Without this exception, nobody could create the first User. */
const firstUser = 'admin'

export function openUserIndex({ resources, requireUsers, changed, unused, failed }: UserIndexOptions): UserIndex {
  const users = new Map<string, UserRecord>()
  const affects = (username: string) => changed(caller => caller.username === username)
  const following = startInformer({
    resources,
    kind: User,
    keep: read,
    failed,
    changed: (_, now, before) => {
      if (before && now?.uid !== before.uid) {
        if (users.get(before.username)?.uid === before.uid) users.delete(before.username)
        unused(before.uid)
      }
      if (now) users.set(now.username, now)
      for (const username of new Set([before?.username, now?.username]))
        if (username !== undefined && before?.isDisabled !== now?.isDisabled) affects(username)
    },
  })
  const deleted = new Map<string, Deletion>()
  const records = startInformer({
    resources,
    kind: UsernameRecord,
    counts: mentions('deletedAt'),
    keep: ({ spec }) => spec as UsernameSpec,
    failed,
    changed: (_, now, before) => {
      const username = now?.username ?? before?.username ?? ''
      if (now?.deletedAt === undefined) deleted.delete(username)
      else deleted.set(username, deletionOf(now))
      if (now?.deletedAt !== before?.deletedAt || now?.deletions !== before?.deletions) affects(username)
    },
  })
  const isLeftOver: UserIndex['isLeftOver'] = ({ uid, user, userDeletions, since }) => {
    const deletion = user === undefined ? undefined : deleted.get(user)
    if (!deletion) return false
    const { count, byTime } = deletion
    return userDeletions < count || (byTime !== undefined && (since < byTime.at || byTime.keys.has(uid)))
  }
  return {
    ready: Promise.all([following.ready, records.ready]).then(() => {}),
    get: username => users.get(username),
    isDisabled: username => users.get(username)?.isDisabled === true,
    isLeftOver,
    deletionsOf: username => deleted.get(username)?.count ?? 0,
    problemOf(key) {
      if (!key.user) return undefined
      const user = users.get(key.user)
      if (user?.isDisabled) return 'the user of the access key is disabled'
      if (deleted.size && isLeftOver(key)) return 'the user of the access key was deleted'
      if (user) return undefined
      if (key.session || key.login !== undefined) return 'the user of the sign-in does not exist; sign in again'
      return requireUsers && key.user !== firstUser
        ? 'the user of the access key has no User object, which this server requires'
        : undefined
    },
    stop() {
      following.stop()
      records.stop()
    },
  }
}

type Deletion = {
  readonly count: number
  /** Set if an earlier version deleted the last User: it did not count, and compared times. */
  readonly byTime: { readonly at: number; readonly keys: ReadonlySet<string> } | undefined
}

function deletionOf({ deletions = 0, deletedAt = '', deletedKeys }: UsernameSpec): Deletion {
  return { count: deletions, byTime: deletedKeys && { at: Date.parse(deletedAt), keys: new Set(deletedKeys) } }
}

function read(object: UserObject): UserRecord {
  const { metadata, spec = {}, status = {} } = object
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    username: spec.username ?? '',
    isDisabled: spec.disabled === true || metadata.deletionTimestamp !== undefined,
    issuers: (status.identities ?? []).map(({ issuer }) => issuer ?? ''),
  }
}
