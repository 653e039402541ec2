// Keeps keys from before the deletion of a User invalid, also those that are created at the same moment (D63).
//
// Keys show their creation in seconds, and clocks of replicas differ. So a User counts as deleted a few seconds later, and keys that are
// created after the deletion get at least that creation time.

import type { Precondition } from '../api/admission.ts'
import { permissionsChanged } from '../api/errors.ts'
import { type Resource, timestamp } from '../api/object.ts'
import { UsernameRecord, type UsernameSpec, usernameRef } from '../kinds/username-record.ts'
import { digest } from './digest.ts'

export type DeletedUserDependencies = {
  readonly now: () => number
  /** Keys of this user with an earlier creation time, in milliseconds, are of a deleted User; undefined: none was deleted. */
  readonly userDeletedAt: (username: string) => number | undefined
  /** The stored record of a username. */
  readonly usernameRecord: (username: string) => UsernameSpec | undefined
}

/** Longer than a commit takes, which may store keys that the deletion did not see. */
const marginMs = 5000

export const deletionTime = (now: number): string => timestamp(now + marginMs)

/** When a new key of this user counts as created. */
export const creationTime = (
  { now, userDeletedAt }: Pick<DeletedUserDependencies, 'now' | 'userDeletedAt'>,
  username: string,
): number => Math.max(now(), userDeletedAt(username) ?? 0)

/** A new key with its creation time. */
export function afterDeletion<T extends Pick<Resource, 'metadata'>>(
  dependencies: DeletedUserDependencies,
  key: T,
  username: string,
): T {
  const at = timestamp(creationTime(dependencies, username))
  const { creationTimestamp = at, ...metadata } = key.metadata
  return creationTimestamp >= at ? key : { ...key, metadata: { ...metadata, creationTimestamp: at } }
}

/** A request that began before the deletion of the User must not create a key after it. */
export function unlessDeleted(
  { userDeletedAt, usernameRecord }: DeletedUserDependencies,
  username: string,
): () => readonly Precondition[] {
  const known = userDeletedAt(username)
  const record: Precondition = { kind: UsernameRecord, ref: usernameRef(username, digest) }
  return () => {
    const { deletedAt } = usernameRecord(username) ?? {}
    if ((deletedAt === undefined ? undefined : Date.parse(deletedAt)) !== known) throw permissionsChanged()
    return [record]
  }
}
