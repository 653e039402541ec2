// User: a person, or another user that an administrator wants to manage (D63).

import { userTerm } from '../api/candidates.ts'
import { type FieldError, invalidValue, required } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import { defineKind, type KindOf } from '../api/kind.ts'
import { dnsSubdomain, isReservedName } from '../api/names.ts'
import { type Resource, timestamp } from '../api/object.ts'
import { flag, list, longText, type Schema, type Static, struct, text, time } from '../api/schema.ts'
import { conditions, observedGeneration } from './shared-schema.ts'

const spec = struct('Desired state of the user.', {
  username: text(
    'Name of the user in keys, bindings, teams, owners and access entries. Unique and immutable. Defaults to the object name.',
  ),
  displayName: longText('Name shown to people. Every sign-in updates it.'),
  email: longText('E-mail address, for display only. Every sign-in updates it.'),
  disabled: flag('When true, the keys, sessions and tokens of the user are invalid.'),
})

const identity = struct('An account at an identity provider.', {
  provider: text('Name of the provider when the identity was linked.'),
  issuer: text('URL of the issuer.'),
  subject: text('Subject of the person at the issuer.'),
  since: time('Time when the identity was linked.'),
})

const status = struct('Observed state of the user.', {
  teams: list(text(''), 'Teams of the user.'),
  identities: list(identity, 'Accounts that sign in as this user.'),
  lastActivity: time('Last time that a key of the user was used.'),
  conditions,
  observedGeneration,
})

export type UserObject = Resource<Static<typeof spec>, Static<typeof status>>
export type UserIdentity = Static<typeof identity>

/** The body of the subresource `link`. The handler is in src/admission/user-link.ts. */
const link = struct('', {
  provider: text('Name of the provider.'),
  issuer: text('URL of the issuer. Default: the one of the provider.'),
  subject: text('Subject of the person at the issuer.'),
}) as Schema

/** On a create by the server: the identity that signed in first. It becomes the first of status.identities. */
export const identityAnnotation = 'platform.sh/identity'

export const User: KindOf<UserObject> = defineKind({
  kind: 'User',
  plural: 'users',
  singular: 'user',
  categories: ['platform'],
  namespaced: false,
  description: 'User is a person who signs in, or another user with access keys.',
  spec,
  status,
  selectable: { 'spec.username': '', 'spec.disabled': 'false' },
  subresources: { link: { verb: 'create', kind: 'UserLink', spec: link } },
  // People may get their own User. A list of one would look like a list of all.
  allOrNothing: true,
  rights: ({ spec: { username } = {} }, who) =>
    username === who.username ? [{ verbs: ['get'], subresources: [], because: 'the User is the caller’s own' }] : [],
  readers: ({ spec: { username = '' } = {} }) => [userTerm(username)],
  columns: [
    { name: 'Username', type: 'string', description: 'Name of the user.', value: o => o.spec?.username as string },
    {
      name: 'Display-Name',
      type: 'string',
      description: 'Name shown to people.',
      value: o => o.spec?.displayName as string,
    },
    {
      name: 'Disabled',
      type: 'boolean',
      description: 'Whether the user is disabled.',
      value: o => o.spec?.disabled === true,
    },
    {
      name: 'Last-Activity',
      type: 'date',
      description: 'Last time that a key of the user was used.',
      value: o => o.status?.lastActivity as string,
    },
    {
      name: 'Email',
      type: 'string',
      description: 'E-mail address.',
      priority: 1,
      value: o => o.spec?.email as string,
    },
  ],
  prepare: next =>
    next.spec?.username ? next : { ...next, spec: { ...next.spec, username: next.metadata.name ?? '' } },
  grants: userGrants,
  validate: (next, old) => checkUsername(next.spec?.username, old?.spec?.username),
  join: (user, lastActivity) => {
    const used = lastActivity(user.metadata.uid ?? '')
    return used === undefined ? user : { ...user, status: { ...user.status, lastActivity: timestamp(used) } }
  },
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'User',
    metadata: { name: 'ada' },
    spec: { username: 'ada', displayName: 'Ada Lovelace', email: 'ada@example.org' },
  },
})

/**
 * Creating, enabling and linking a User needs everything that its username holds (D63). So does its deletion while it is disabled,
 * because the person can sign in again after that: by the last finalizer, or by an owner that the garbage collector follows.
 */
function userGrants({
  metadata: { deletionTimestamp, finalizers = [], ownerReferences = [] },
  spec: { username: user = '', disabled } = {},
  status: { identities = [] } = {},
}: UserObject): Grant[] {
  const isLeaving = deletionTimestamp !== undefined && finalizers.length === 0
  const grant = (field: string, through: string): Grant => ({ type: 'user', field, user, through })
  return [
    grant('spec.username', 'name'),
    ...(disabled ? [] : [grant('spec.disabled', 'enabled')]),
    ...(disabled && !isLeaving ? [] : [grant('metadata.finalizers', 'gone')]),
    ...ownerReferences.map(({ apiVersion, kind, name, uid }) =>
      grant('metadata.ownerReferences', `owner ${apiVersion} ${kind} ${name} ${uid}`),
    ),
    ...identities.map(({ issuer, subject }) => grant('status.identities', JSON.stringify([issuer, subject]))),
  ]
}

const maxUsername = 512

function checkUsername(username = '', old?: string): FieldError[] {
  const field = 'spec.username'
  if (old !== undefined) return username === old ? [] : [invalidValue(field, username, 'field is immutable')]
  if (username === '') return [required(field, 'name of the user')]
  const problem = isReservedName(username)
    ? 'names with the prefix system: or platform: are reserved for the server'
    : username === '*'
      ? 'must be one user'
      : isVisible(username)
        ? undefined
        : `must have at most ${maxUsername} characters, no invisible ones and no surrounding blanks`
  return problem === undefined ? [] : [invalidValue(field, username, problem)]
}

const isVisible = (text: string) =>
  text.length <= maxUsername && text.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text) && text.trim() === text

/** The name of the object for a username: the same if it is a valid name, else similar to it and unique. */
export function userObjectName(username: string, digest: (text: string) => string, mayBeSame = true): string {
  if (mayBeSame && dnsSubdomain(username).length === 0) return username
  const slug = username
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 60)
    .replace(/^-+|-+$/g, '')
  return `${slug || 'user'}-${digest(username).slice(0, 8)}`
}
