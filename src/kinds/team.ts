// Team: groups users, and can own objects and access keys (SPEC §2.4).

import { memberTerm } from '../api/candidates.ts'
import { type FieldError, invalidValue, isEnough, required } from '../api/errors.ts'
import type { Grant, Recipient } from '../api/grant.ts'
import { defineKind, type KindOf, type PermissionSubject } from '../api/kind.ts'
import { dnsLabel, isReservedName } from '../api/names.ts'
import type { Resource } from '../api/object.ts'
import { longText, type Static, setOf, struct, text } from '../api/schema.ts'
import { keepConditions } from './object-conditions.ts'
import { checkPullSecrets, imagePullSecrets, pullTarget } from './pull-secrets.ts'
import {
  access,
  checkAccess,
  checkOwner,
  conditions,
  keepOwner,
  observedGeneration,
  oneOwner,
  owner,
  sharedGrants,
  sharedReaders,
  sharedRights,
} from './shared-schema.ts'
import { ownerName } from './shared-secret.ts'
import { checkClusterRoles, clusterRoles, localRoles, remoteRoles } from './team-cluster-roles.ts'

const spec = struct('Desired state of the team.', {
  displayName: longText('Name shown to people.'),
  description: longText('Description of the team.'),
  owner,
  username: text(
    'Second name of the team, also for an image registry: a DNS label that no other team has as name or username. Defaults to the object name. Objects may name the team by it; the server stores the name.',
  ),
  users: setOf(text(''), 'Users that belong to the team.', { maxItems: 2000 }),
  groups: setOf(
    text(''),
    'Groups in tokens whose members belong to the team. The prefixes system: and platform: are reserved.',
  ),
  imagePullSecrets,
  clusterRoles,
  access,
})
const status = struct('Observed state of the team.', { conditions, observedGeneration })

export const Team: KindOf<Resource<Static<typeof spec>, Static<typeof status>>> = defineKind({
  kind: 'Team',
  plural: 'teams',
  singular: 'team',
  categories: ['all', 'platform'],
  namespaced: false,
  description: 'Team groups users and manages access for all of them at once.',
  spec,
  status,
  statusSubresource: true,
  alternatives: oneOwner,
  selectable: { 'spec.username': '' },
  subresources: {
    permissions: {
      verb: 'get',
      kind: 'TeamPermissions',
    },
  },
  columns: [
    {
      name: 'Display-Name',
      type: 'string',
      description: 'Name shown to people.',
      value: o => o.spec?.displayName as string,
    },
    {
      name: 'Users',
      type: 'integer',
      description: 'Number of users listed.',
      value: o => (o.spec?.users as string[] | undefined)?.length ?? 0,
    },
    {
      name: 'Groups',
      type: 'integer',
      description: 'Number of groups listed.',
      priority: 1,
      value: o => (o.spec?.groups as string[] | undefined)?.length ?? 0,
    },
    {
      name: 'Owner',
      type: 'string',
      description: 'Owner of the object.',
      priority: 1,
      value: o => ownerName(o.spec?.owner),
    },
  ],
  prepare: next =>
    next.spec?.username || dnsLabel(next.metadata.name ?? '').length
      ? next
      : { ...next, spec: { ...next.spec, username: next.metadata.name } },
  rights: (team, who) => [
    ...sharedRights(team, who),
    ...(isMember(team, who)
      ? [{ verbs: ['get'], subresources: ['permissions'], because: 'members may get their team' }]
      : []),
  ],
  readers: team => [...sharedReaders(team), memberTerm(team.metadata.name ?? '')],
  assign: (next, old, caller) => keepConditions(keepOwner(next, old, caller), old, caller),
  grants: teamGrants,
  validate: (next, old) => [
    ...checkUsername(next.spec?.username),
    ...checkClusterRoles(next.spec?.clusterRoles),
    ...checkNames('spec.users', next.spec?.users),
    ...checkNames('spec.groups', next.spec?.groups),
    ...checkGroups(next.spec?.groups, old?.spec?.groups),
    ...checkPullSecrets(next.spec?.imagePullSecrets, old?.spec?.imagePullSecrets),
    ...checkOwner(next.spec?.owner),
    ...checkAccess(next.spec?.access, old?.spec?.access),
  ],
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'Team',
    metadata: { name: 'web' },
    spec: { displayName: 'Web', users: ['ada', 'grace'] },
  },
})

function isMember({ metadata: { name = '', uid } }: Pick<Resource, 'metadata'>, { teams }: PermissionSubject): boolean {
  return teams.has(name) && teams.get(name) === uid
}

type TeamObject = Resource<Static<typeof spec>, unknown>

/** A new team has every permission that others granted to its name. Its members have the permissions of the team. */
function teamGrants(team: TeamObject, to?: Recipient): Grant[] {
  const { name = '' } = team.metadata
  const { users = [], groups = [], imagePullSecrets: pulled = [] } = team.spec ?? {}
  const members = (field: string, kind: Recipient['kind'], names: readonly string[]): Grant[] =>
    names.map(one => ({ type: 'team', field, team: name, to: { kind, name: one } }))
  return [
    { type: 'team', field: 'metadata.name', team: name },
    ...members('spec.users', 'user', users),
    ...members('spec.groups', 'group', groups),
    ...localRoles(team.spec).map(
      (role): Grant => ({
        type: 'role',
        field: 'spec.clusterRoles',
        role: { kind: 'ClusterRole', namespace: '', name: role },
        namespace: '',
      }),
    ),
    ...remoteRoles(team.spec).map((one): Grant => ({ type: 'clusterRole', field: 'spec.clusterRoles', ...one })),
    ...pulled.map(
      (secret, index): Grant => ({
        type: 'read',
        field: `spec.imagePullSecrets[${index}]`,
        target: pullTarget(secret),
      }),
    ),
    ...sharedGrants(team, to),
  ]
}

/** Rejects empty names. */
const checkNames = (path: string, names: readonly string[] = []): FieldError[] =>
  names.flatMap((name, index) => (name === '' ? [required(`${path}[${index}]`, 'a name')] : []))

/** A reserved group would make everyone, or a whole team, members (D61). A stored one has no effect and may stay. */
function checkGroups(groups: readonly string[] = [], before: readonly string[] = []): FieldError[] {
  const errors: FieldError[] = []
  const known = new Set(before)
  for (const [index, name] of groups.entries())
    if (isReservedName(name) && !known.has(name) && !isEnough(errors))
      errors.push(
        invalidValue(
          `spec.groups[${index}]`,
          name,
          'names with the prefix system: or platform: are reserved for the server',
        ),
      )
  return errors
}

function checkUsername(username: string | undefined): FieldError[] {
  return username ? dnsLabel(username).map(problem => invalidValue('spec.username', username, problem)) : []
}
