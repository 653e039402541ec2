// Stores in each new key of a user how many Users with this name were deleted, so that keys of a deleted User stay invalid (D63).
//
// Replicas write at the same time and their clocks differ, so no time can tell which keys are from before a deletion.

import type { Precondition } from '../api/admission.ts'
import { permissionsChanged } from '../api/errors.ts'
import { UsernameRecord, type UsernameSpec, usernameRef } from '../kinds/username-record.ts'
import { digest } from './digest.ts'

export type DeletedUserDependencies = {
  /** How many Users with this name were deleted, as authentication knows it. */
  readonly deletionsOf: (username: string) => number
  /** The stored record of a username. */
  readonly usernameRecord: (username: string) => UsernameSpec | undefined
}

/** A request that began before a deletion of the User must not create a key after it. */
export function unlessDeleted(
  { usernameRecord }: DeletedUserDependencies,
  username: string,
  deletions: number,
): () => readonly Precondition[] {
  const record: Precondition = { kind: UsernameRecord, ref: usernameRef(username, digest) }
  return () => {
    if ((usernameRecord(username)?.deletions ?? 0) !== deletions) throw permissionsChanged()
    return [record]
  }
}
