// OwnedAccessKey: stores the secret as a digest, shows it once, and revokes tokens when a key gets weaker (D12, D13, D33).

import type { Admission } from '../api/admission.ts'
import type { Scope } from '../api/caller.ts'
import { type FieldError, invalid, invalidSecret } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { isMistyped, makeKey } from '../kinds/key-format.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { revokedByKey } from '../kinds/revocation-triggers.ts'
import { type BroughtKeyDependencies, claimDigest } from './brought-keys.ts'
import { type DeletedUserDependencies, unlessDeleted } from './deleted-user.ts'
import { digest } from './digest.ts'
import { type RotationDependencies, rotateKey } from './key-rotation.ts'
import { type ProjectDependencies, unknownProjects } from './unknown-projects.ts'

type Key = ObjectOf<typeof OwnedAccessKey>

type Dependencies = RotationDependencies &
  ProjectDependencies &
  BroughtKeyDependencies &
  DeletedUserDependencies & {
    /** Whether one scope is at most as wide as another (D25). */
    readonly isNoWider: (inner: unknown, outer: unknown) => boolean
  }

export const ownedAccessKeyAdmission = (dependencies: Dependencies): Admission<Key> => {
  const { now, random, isNoWider, deletionsOf } = dependencies
  return {
    admit: async (next, old, { caller, dryRun, warn }) => {
      const { key: given, ...rest } = next.spec ?? {}
      const scopes = { caller, next: rest.scope as Scope | undefined, old: old?.spec?.scope as Scope | undefined }
      for (const warning of unknownProjects(dependencies, scopes)) warn(warning)
      if (!given && old) return { object: { ...next, spec: rest } }
      const errors = given ? checkKey(given) : []
      if (errors.length) throw invalid(OwnedAccessKey, next.metadata.name ?? '', errors)
      const key = given || makeKey(random)
      const taken = digest(key)
      // A new secret replaces all others, so it ends a running overlap (D22).
      const { previous, ...status } = next.status ?? {}
      const kept = taken === old?.status?.digest && previous ? { previous } : {}
      const object: Key = { ...next, spec: rest, status: { ...status, ...kept, digest: taken } }
      // A dry run must not reveal whether a key is in use, which would help to guess keys (D62).
      if (dryRun) return { object }
      // A generated key needs no claim: nobody can bring it before the response shows it.
      const isClaim = given && taken !== old?.status?.digest
      const companions = isClaim ? [claimDigest(dependencies, caller, object)] : []
      if (old) return { object, companions }
      const { user } = rest
      const deletions = user ? deletionsOf(user) : 0
      const created = deletions ? { ...object, status: { ...object.status, userDeletions: deletions } } : object
      const preconditions = user ? unlessDeleted(dependencies, user, deletions) : undefined
      if (!given)
        warn(
          "the key is in spec.key of this response and is not shown again; print it with kubectl create -o jsonpath='{.spec.key}'",
        )
      return {
        object: created,
        companions,
        preconditions,
        shown: (stored: Resource) => ({ ...stored, spec: { ...stored.spec, key } }),
      }
    },
    companions: (old, next) => (old ? revokedByKey(old, next, { now, digest, isNoWider }) : []),
    subresources: { rotate: rotateKey(dependencies) },
  }
}

function checkKey(key: string): FieldError[] {
  if (isMistyped(key))
    return [invalidSecret('spec.key', 'it starts with plat_ but its checksum is wrong; omit it to generate a key')]
  // A longer key would not fit into the Authorization header.
  return /^[\x21-\x7e]{32,4000}$/.test(key)
    ? []
    : [invalidSecret('spec.key', 'must be 32 to 4000 characters of visible ASCII')]
}
