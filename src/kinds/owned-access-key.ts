// OwnedAccessKey: a bearer key of a user, a team or a subject (SPEC §2.6).

import type { Caller, Scope } from '../api/caller.ts'
import { editorTerm, userTerm } from '../api/candidates.ts'
import { type FieldError, fieldForbidden, invalidValue, isEnough } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import { defineKind, type KindOf, type ObjectPermission, type PermissionSubject } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { closed, flag, integer, list, longText, mapOf, oneOf, type Static, struct, text, time } from '../api/schema.ts'
import { isAgentSubject } from './cluster-desired.ts'
import { joinActivity, rotation } from './key-rotation.ts'
import { checkScope } from './scope-validation.ts'
import { callerAsOwner, scope } from './shared-schema.ts'
import { meansTeam } from './team-uids.ts'

const identity = struct('Single sign-on login data, if available.', {
  userId: text('Subject of the user.'),
  username: text('Username.'),
  preferredUsername: longText('Preferred username or display name.'),
  email: longText('E-mail of the user.'),
  emailVerified: flag('Whether the e-mail was verified.'),
  groups: list(text(''), 'Groups from the identity provider.'),
  connector: text('Name of the connector the key was created from.'),
  connectorData: longText('Data the connector needs for later requests. Never shown.'),
  identityRefresh: time('Last time the identity was refreshed.'),
  extraClaims: mapOf(longText(''), 'Further claims of the identity.'),
})

const oidcLogin = struct('Deprecated, use identity. OIDC login data.', {
  idToken: longText('Current ID token from login. Never shown.'),
  accessToken: longText('Current access token from login. Never shown.'),
  refreshToken: longText('Current refresh token from login. Never shown.'),
  lastRefresh: time('Last time the ID token was refreshed.'),
})

const oidcProvider = struct('If the token is a refresh token, information about it.', {
  clientId: text('Client of the provider.'),
  nonce: text('Nonce of the login.'),
  redirectUri: longText('Redirect URI of the login.'),
  scopes: longText('Requested scopes.'),
  connector: text('Name of the connector the key was created from.'),
})

const spec = struct(
  'Desired state of the access key.',
  {
    displayName: longText('Name shown to people.'),
    description: longText('Free-text description.'),
    user: text('The user this key refers to. Exactly one of user, team, subject; none means the caller.'),
    team: text('The team this key refers to.'),
    subject: text('Generic subject usable instead of user or team.'),
    groups: list(text(''), 'Extra groups applied when using the key.'),
    key: longText(
      'The key itself, used as bearer token. Shown once, in the response to its creation. Generated if absent.',
    ),
    disabled: flag('When true, the key continues to exist but does not grant access.'),
    ttl: integer('Lifetime of the key in seconds. Absent or 0: it never expires.', { minimum: 0 }),
    ttlAfterLastActivity: flag('When true, ttl counts from the last activity instead of creation.'),
    scope,
    type: oneOf(
      ['Login', 'User', 'Other', 'Reset', 'OIDCRefreshToken', 'NetworkPeer', 'Workspace'],
      'Whether the key is managed by its user or by the platform itself.',
      { default: 'User' },
    ),
    identity,
    identityRefresh: time('Last time the identity was refreshed.'),
    parent: text('Deprecated. A key whose login data this key shares.', { deprecated: true }),
    oidcProvider,
    oidcLogin: { ...oidcLogin, deprecated: true } as typeof oidcLogin,
  },
  [],
  closed,
)

const status = struct('Observed state of the access key.', {
  lastActivity: time('Last time the key was used.'),
  rotatedAt: time('Last time the key was rotated. Its ttl starts then.'),
  keys: list(
    struct('A valid key.', {
      id: text('Distinguishes the keys of this object.'),
      since: time('Creation time of the key.'),
      until: time('Expiry.'),
      lastActivity: time('Last time it was used.'),
    }),
    'Both keys during an overlap.',
  ),
  digest: text('SHA-256 of the key, used to look it up (D13).', { 'x-internal': true }),
  previous: {
    ...struct('The key before the last rotation, during the overlap.', {
      digest: text('SHA-256 of the key.'),
      until: time('Expiry.'),
    }),
    'x-internal': true,
  },
  userDeletions: integer('How many Users with the name of its user were deleted before its creation.', {
    'x-internal': true,
  }),
})

type Key = Resource<Static<typeof spec>, Static<typeof status>>

const secrets = [
  'spec.identity.connectorData',
  'spec.oidcLogin.idToken',
  'spec.oidcLogin.accessToken',
  'spec.oidcLogin.refreshToken',
]

export const OwnedAccessKey: KindOf<Key> = defineKind({
  kind: 'OwnedAccessKey',
  plural: 'ownedaccesskeys',
  singular: 'ownedaccesskey',
  shortNames: ['oak'],
  categories: ['platform'],
  namespaced: false,
  description: 'OwnedAccessKey is a bearer key for the API and the command line, for people and pipelines.',
  spec,
  status,
  writeOnly: ['spec.key'],
  hidden: ['status.digest', 'status.previous', 'status.userDeletions', ...secrets],
  sealed: secrets,
  join: joinActivity,
  selectable: { 'spec.user': '', 'spec.team': '', 'spec.disabled': 'false' },
  subresources: { rotate: rotation },
  ownerOnly: true,
  rights: ownRights,
  readers: ownReaders,
  generateNamePrefix: 'key-',
  columns: [
    {
      name: 'Display-Name',
      type: 'string',
      description: 'Name shown to people.',
      value: o => o.spec?.displayName as string,
    },
    {
      name: 'Owner',
      type: 'string',
      description: 'User, team or subject the key acts as.',
      value: o => ownerOf(o as Key),
    },
    { name: 'Type', type: 'string', description: 'Manager of the key.', value: o => o.spec?.type as string },
    {
      name: 'Disabled',
      type: 'boolean',
      description: 'Whether the key is disabled.',
      value: o => o.spec?.disabled === true,
    },
    {
      name: 'Last-Activity',
      type: 'date',
      description: 'Last time it was used.',
      value: o => o.status?.lastActivity as string,
    },
    {
      name: 'TTL',
      type: 'integer',
      description: 'Lifetime in seconds.',
      priority: 1,
      unit: 'seconds',
      value: o => o.spec?.ttl as number,
    },
  ],
  prepare: next => (next.spec ? next : { ...next, spec: { type: 'User' as const } }),
  validate: (next, old) => [
    ...checkNames(next),
    ...checkSubject(next, old),
    ...checkAgent(next),
    ...checkScope(next.spec?.scope as Scope, old?.spec?.scope as Scope),
  ],
  assign: assignOwner,
  grants: keyGrants,
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'OwnedAccessKey',
    metadata: { name: 'ci' },
    spec: { displayName: 'Pipeline', user: 'ada', ttl: 604800 },
  },
})

/**
 * Users manage their own keys, and keys of teams that they may update (D15). Only administrators manage keys of deleted
 * teams (D61).
 */
function ownRights(key: Key, { username, may, teamUid }: PermissionSubject): ObjectPermission[] {
  const { spec = {} } = key
  if (spec.user !== undefined && spec.user === username)
    return [{ verbs: ['*'], subresources: ['*'], because: 'the key is the caller’s own', isOwner: true }]
  const team = spec.team
  if (team === undefined || !meansTeam(key, team, teamUid(team))) return []
  const target = { group: 'management.platform.sh', resource: 'teams', namespace: '', name: team }
  return may({ verb: 'update', target })
    ? [{ verbs: ['*'], subresources: ['*'], because: `the caller may update team ${team}`, isOwner: true }]
    : []
}

/** Everyone who may get a right from `ownRights`. */
function ownReaders({ spec: { user, team } = {} }: Key): string[] {
  return [...(user ? [userTerm(user)] : []), ...(team ? [editorTerm(team), editorTerm('*')] : [])]
}

const subjects = ['user', 'team', 'subject'] as const

function ownerOf(key: Key): string | undefined {
  return key.spec?.user ?? (key.spec?.team ? `team ${key.spec.team}` : key.spec?.subject)
}

/** Only the server issues reserved names (D14). */
function checkNames({ spec = {} }: Key): FieldError[] {
  const errors: FieldError[] = []
  const check = (field: string, names: readonly (string | undefined)[], isList = true) => {
    for (const [index, name] of names.entries())
      if (name && /^(system|platform):/.test(name) && !isEnough(errors))
        errors.push(
          invalidValue(
            isList ? `${field}[${index}]` : field,
            name,
            'names with the prefix system: or platform: are reserved for the server',
          ),
        )
  }
  check('spec.user', [spec.user], false)
  if (!isAgentSubject(spec.subject ?? '')) check('spec.subject', [spec.subject], false)
  check('spec.groups', spec.groups ?? [])
  check('spec.identity.username', [spec.identity?.username], false)
  check('spec.identity.groups', spec.identity?.groups ?? [])
  return errors
}

/** A key of an agent lies in a connected cluster, and can do nothing else (D68). */
function checkAgent({ spec = {} }: Key): FieldError[] {
  if (!isAgentSubject(spec.subject ?? '')) return []
  const { roles, ...others } = (spec.scope ?? {}) as Scope
  const isAgent = roles?.length === 1 && roles[0]?.role === 'agent' && Object.keys(roles[0]).length === 1
  if (isAgent && Object.keys(others).length === 0) return []
  return [
    invalidValue('spec.scope', JSON.stringify(spec.scope ?? {}), 'must be {"roles":[{"role":"agent"}]} for an agent'),
  ]
}

/** A key has exactly one owner, which is immutable (D14). */
function checkSubject(next: Key, old: Key | undefined): FieldError[] {
  const set = subjects.filter(field => next.spec?.[field])
  if (set.length > 1)
    return set
      .slice(1)
      .map(field =>
        fieldForbidden(`spec.${field}`, `spec.${set[0]} is set; a key belongs to one of user, team, subject`),
      )
  if (!old) return []
  return subjects.flatMap(field =>
    (next.spec?.[field] ?? '') === (old.spec?.[field] ?? '')
      ? []
      : [invalidValue(`spec.${field}`, next.spec?.[field] ?? '', 'field is immutable')],
  )
}

/** Without an owner, the key belongs to the caller (D14). */
function assignOwner(next: Key, _old: Key | undefined, caller: Caller): Key {
  if (subjects.some(field => next.spec?.[field])) return next
  const own = caller.identity === 'Subject' ? { subject: caller.username } : callerAsOwner(caller)
  return { ...next, spec: { ...next.spec, ...own } }
}

/** A client with the secret acts as the owner of the key. */
function keyGrants({ spec = {} }: Key): Grant[] {
  const { team } = spec
  return [{ type: 'credential', field: 'spec', ...(team ? { to: { kind: 'team', name: team } } : {}) }]
}
