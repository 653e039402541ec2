// Looks up stored objects for admission, by name.

import type { Ref } from '../api/object.ts'
import type { Target } from '../api/permissions.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { SecretVersion } from '../kinds/secret-version.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { Team } from '../kinds/team.ts'
import { TeamUsernameRecord } from '../kinds/team-username-record.ts'
import {
  IdentityRecord,
  identityRef,
  UsernameRecord,
  type UsernameSpec,
  usernameRef,
} from '../kinds/username-record.ts'
import type { Registry } from '../registry/registry.ts'

type Identity = Parameters<typeof identityRef>[0]

/** `registry`: looked up when called, because it needs these functions. */
export const storedLookups = (registry: () => Registry, digest: (text: string) => string) => ({
  usernameRecord: (username: string) =>
    registry().peek(UsernameRecord, usernameRef(username, digest))?.spec as UsernameSpec | undefined,
  usernameOf: (identity: Identity) =>
    registry().peek(IdentityRecord, identityRef(identity, digest))?.spec?.['username'] as string | undefined,
  isTeam: (name: string) => registry().peek(Team, { namespace: '', name }) !== undefined,
  usernameHolder: (username: string) => {
    const record = registry().peek(TeamUsernameRecord, { namespace: '', name: username })
    const name = record?.spec?.['team'] as string | undefined
    const team = name === undefined ? undefined : registry().peek(Team, { namespace: '', name })
    return team?.spec?.['username'] === username ? name : undefined
  },
  secretUid: ({ resource, namespace, name = '' }: Target) => {
    const kind = [SharedSecret, ProjectSecret].find(one => one.plural === resource)
    return kind && registry().peek(kind, { namespace, name })?.metadata.uid
  },
  keyNamed: (name: string) => registry().peek(OwnedAccessKey, { namespace: '', name }),
  sharedSecretUid: (ref: Ref) => registry().peek(SharedSecret, ref)?.metadata.uid,
  openVersion: (ref: Ref) => registry().open(SecretVersion, ref),
})
