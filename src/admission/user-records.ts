// Computes what a write of a User stores with it: the records that make its names unique, and the revocation of its tokens (D63).

import type { Companion } from '../api/admission.ts'
import { conflict, duplicateValue, invalid } from '../api/errors.ts'
import { type JsonObject, type Resource, timestamp } from '../api/object.ts'
import { ownerRevocation } from '../kinds/merged-revocation.ts'
import { User, type UserIdentity, type UserObject } from '../kinds/user.ts'
import {
  IdentityRecord,
  identityRef,
  isSameIdentity,
  UsernameRecord,
  type UsernameSpec,
  usernameRef,
} from '../kinds/username-record.ts'
import { digest } from './digest.ts'

export type RecordDependencies = {
  readonly now: () => number
  /** The stored record of a username. */
  readonly usernameRecord: (username: string) => UsernameSpec | undefined
  /** The username that an identity signs in as. */
  readonly usernameOf: (identity: UserIdentity) => string | undefined
}

type Change = { readonly old: UserObject | undefined; readonly next: UserObject | undefined }

export function userCompanions(dependencies: RecordDependencies, change: Change): readonly Companion[] {
  const { old, next } = change
  const username = (next ?? old)?.spec?.username ?? ''
  const known = old ? identitiesOf(old) : (dependencies.usernameRecord(username)?.identities ?? [])
  const [added] = identitiesOf(next).filter(one => !known.some(other => isSameIdentity(one, other)))
  const ends = isActive(old) && !isActive(next)
  const isRecorded = !old || !next || added !== undefined || isTerminating(next) !== isTerminating(old)
  const isRevoked = ends || (!old && !isActive(next))
  return [
    ...(isRecorded ? [usernameCompanion(dependencies, username, change)] : []),
    ...(added ? [identityCompanion(username, added, next)] : []),
    ...(isRevoked
      ? [
          ownerRevocation(
            { uid: '', user: username },
            `user ${username} was ${next?.spec?.disabled ? 'disabled' : 'deleted'}`,
            {
              now: dependencies.now,
              digest,
            },
          ),
        ]
      : []),
  ]
}

export const identitiesOf = (user: UserObject | undefined): readonly UserIdentity[] => user?.status?.identities ?? []

const isTerminating = (user: UserObject | undefined) => user?.metadata.deletionTimestamp !== undefined
const isActive = (user: UserObject | undefined) => user !== undefined && !user.spec?.disabled && !isTerminating(user)

export const usernameTaken = (user: UserObject) =>
  invalid(User, user.metadata.name ?? '', [duplicateValue('spec.username', user.spec?.username)])

function usernameCompanion({ now }: RecordDependencies, username: string, { old, next }: Change): Companion {
  const { name } = usernameRef(username, digest)
  const isDeleted = !next || (isTerminating(next) && !isTerminating(old))
  const write = (stored?: Resource): JsonObject => {
    const { user, identities = [], deletedKeys, ...before } = (stored?.spec ?? {}) as UsernameSpec
    // Another User got the name after the checks of this write.
    if (next && user?.uid !== undefined && user.uid !== next.metadata.uid) throw usernameTaken(next)
    const more = identitiesOf(next).filter(one => !identities.some(other => isSameIdentity(one, other)))
    return {
      metadata: { name, ...(stored ? { uid: stored.metadata.uid ?? '' } : {}) },
      spec: {
        ...before,
        ...(deletedKeys && !isDeleted ? { deletedKeys } : {}),
        username,
        ...(next ? { user: { name: next.metadata.name, uid: next.metadata.uid } } : {}),
        identities: [...identities, ...more],
        ...(isDeleted ? { deletions: (before.deletions ?? 0) + 1, deletedAt: timestamp(now()) } : {}),
      } as JsonObject,
    }
  }
  return { kind: UsernameRecord, object: write(), merge: write }
}

function identityCompanion(username: string, identity: UserIdentity, next: UserObject | undefined): Companion {
  const { issuer = '', subject = '' } = identity
  const { name } = identityRef(identity, digest)
  return {
    kind: IdentityRecord,
    object: { metadata: { name }, spec: { issuer, subject, username } },
    merge: ({ spec }) => {
      if (spec?.['username'] === username) return undefined
      throw identityTaken(next?.metadata.name ?? '')
    },
  }
}

export const identityTaken = (name: string) =>
  conflict(User, name, 'the identity signs in as another user already', [
    { reason: 'IdentityTaken', message: 'the identity signs in as another user', field: 'spec.subject' },
  ])
