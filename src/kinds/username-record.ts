// UsernameRecord and IdentityRecord: internal kinds that make usernames and identities of people unique (D63, D65).
// Their names are digests, so that a commit with an expected revision decides between concurrent writes, also of replicas.

import { defineKind, type KindOf } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import { integer, list, type Static, struct, text, time } from '../api/schema.ts'

const identity = struct('An account at an identity provider.', {
  provider: text('Name of the provider.'),
  issuer: text('URL of the issuer.'),
  subject: text('Subject at the issuer.'),
  since: time('Time when it was linked.'),
})

const username = struct('The username.', {
  username: text('The username.'),
  user: struct('The User with this username. Absent after its deletion.', {
    name: text('Name of the User.'),
    uid: text('uid of the User.'),
  }),
  identities: list(identity, 'The identities that own the username, also after the deletion of the User.'),
  deletions: integer('How many Users with this name were deleted. Access keys with a lower number are invalid.'),
  deletedAt: time('Last deletion of a User with this name.'),
  deletedKeys: list(
    text(''),
    'Only if an earlier version deleted the last User: uids of invalid access keys. Those from before deletedAt are invalid, too.',
  ),
})

export type UsernameSpec = Static<typeof username>

export const UsernameRecord: KindOf<Resource<UsernameSpec, unknown>> = defineKind({
  kind: 'UsernameRecord',
  plural: 'usernamerecords',
  singular: 'usernamerecord',
  namespaced: false,
  description: 'UsernameRecord reserves a username for a User and its identities.',
  spec: username,
  served: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'UsernameRecord', metadata: { name: 'username-a' } },
})

export const IdentityRecord = defineKind({
  kind: 'IdentityRecord',
  plural: 'identityrecords',
  singular: 'identityrecord',
  namespaced: false,
  description: 'IdentityRecord maps an account at an identity provider to a username.',
  spec: struct('The identity.', {
    issuer: text('URL of the issuer.'),
    subject: text('Subject at the issuer.'),
    username: text('The username that the account signs in as.'),
  }),
  served: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'IdentityRecord', metadata: { name: 'identity-a' } },
})

type Digest = (text: string) => string

export const usernameRef = (of: string, digest: Digest): Ref => ({ namespace: '', name: `username-${digest(of)}` })

export const identityRef = ({ issuer, subject }: IdentityKey, digest: Digest): Ref => ({
  namespace: '',
  name: `identity-${digest(JSON.stringify([issuer, subject]))}`,
})

export type IdentityKey = { readonly issuer?: string | undefined; readonly subject?: string | undefined }

export const isSameIdentity = (one: IdentityKey, other: IdentityKey): boolean =>
  one.issuer === other.issuer && one.subject === other.subject
