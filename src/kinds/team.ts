// Team: groups users, and may own things and keys of its own (SPEC §2.4).

import { duplicateValue, type FieldError, invalid, invalidValue, isEnough, required } from '../api/errors.ts'
import { defineKind, type KindOf, type Tools } from '../api/kind.ts'
import { dnsLabel, isReservedName } from '../api/names.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import { list, mapList, type Static, setOf, struct, text } from '../api/schema.ts'
import { checkClusterRoles, checkPullSecrets, checkShared, isJoined } from './grants.ts'
import { revokedByTeam } from './lost-ground.ts'
import { access, checkAccess, checkOwner, conditions, keepOwner, owner, sharedRights } from './shapes.ts'
import { ownerName } from './shared-secret.ts'
import { checkTeamPower } from './team-power.ts'

const imagePullSecret = struct('A reference to an image pull secret; grants nothing by itself.', {
  apiGroup: text('API group of the secret.'),
  kind: text('Kind of the secret.'),
  secretName: text('Name of the secret.'),
  secretNamespace: text('Namespace of the secret.'),
  key: text('Key within the secret.'),
})

const spec = struct('Desired state of the team.', {
  displayName: text('Name shown to people.'),
  description: text('Description of the team.'),
  owner,
  username: text('Name of the team for identification and as image-registry namespace; a DNS label, default the name.'),
  users: setOf(text(''), 'Users that belong to the team.'),
  groups: setOf(
    text(''),
    'Groups, as defined in a token, whose members belong to the team; none that begins with system: or platform:.',
  ),
  imagePullSecrets: list(imagePullSecret, 'Image pull secrets the team can access.'),
  clusterRoles: mapList(
    struct('A cluster role.', { name: text('The cluster role to assign.') }, ['name']),
    ['name'],
    "Cluster roles assigned to the team's users.",
  ),
  access,
})
const status = struct('Observed state of the team.', { conditions })

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
  subresources: {
    permissions: {
      verb: 'get',
      kind: 'TeamPermissions',
      run: async (team, _asked, tools) => {
        const { name = '' } = team.metadata
        const status = tools.permissionsOf(name) as unknown as JsonObject
        return {
          answer: { apiVersion: 'management.platform.sh/v1', kind: 'TeamPermissions', metadata: { name }, status },
        }
      },
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
    { name: 'Owner', type: 'string', description: 'Who owns it.', priority: 1, value: o => ownerName(o.spec?.owner) },
  ],
  prepare: next =>
    next.spec?.username || dnsLabel(next.metadata.name ?? '').length
      ? next
      : { ...next, spec: { ...next.spec, username: next.metadata.name } },
  rights: (team, who) => [
    ...sharedRights(team, who),
    ...(who.teams.includes(team.metadata.name ?? '')
      ? [{ verbs: ['get'], subresources: ['permissions'], because: 'members may get their team' }]
      : []),
  ],
  besides: revokedByTeam,
  admit: async (next, old, tools) => {
    const object = keepOwner(next, old, tools)
    await checkShared(Team, object, old, tools)
    if (isJoined(object, old)) await checkTeamPower(Team, object, object.metadata.name ?? '', tools)
    checkClusterRoles(Team, object, old, tools)
    await checkPullSecrets(Team, object, old, tools)
    if (object.spec?.username !== old?.spec?.username) checkTaken(object, tools)
    return { object }
  },
  validate: (next, old) => [
    ...checkUsername(next.spec?.username),
    ...(next.spec?.clusterRoles ?? []).flatMap((one, index) =>
      one.name === '' ? [required(`spec.clusterRoles[${index}].name`, 'the cluster role to assign')] : [],
    ),
    ...checkNames('spec.users', next.spec?.users),
    ...checkNames('spec.groups', next.spec?.groups),
    ...checkGroups(next.spec?.groups, old?.spec?.groups),
    ...checkOwner(next.spec?.owner),
    ...checkAccess(next.spec?.access),
  ],
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'Team',
    metadata: { name: 'web' },
    spec: { displayName: 'Web', users: ['ada', 'grace'] },
  },
})

/** A username belongs to one team (D23). */
function checkTaken(
  next: { readonly metadata: { readonly name?: string }; readonly spec?: { readonly username?: string | undefined } },
  tools: Tools,
): void {
  const { name = '' } = next.metadata
  const username = next.spec?.username
  const other = username === undefined ? undefined : tools.teamWithUsername(username)
  if (other !== undefined && other !== name) throw invalid(Team, name, [duplicateValue('spec.username', username)])
}

/** Nobody has an empty name. */
const checkNames = (path: string, names: readonly string[] = []): FieldError[] =>
  names.flatMap((name, index) => (name === '' ? [required(`${path}[${index}]`, 'a name')] : []))

/** A reserved group would make everybody or a whole team members (D61). One that is stored makes nobody a member, and may stay. */
function checkGroups(groups: readonly string[] = [], before: readonly string[] = []): FieldError[] {
  const errors: FieldError[] = []
  const known = new Set(before)
  for (const [index, name] of groups.entries())
    if (isReservedName(name) && !known.has(name) && !isEnough(errors))
      errors.push(
        invalidValue(
          `spec.groups[${index}]`,
          name,
          'names beginning with system: or platform: are given by the server alone',
        ),
      )
  return errors
}

function checkUsername(username: string | undefined): FieldError[] {
  return username ? dnsLabel(username).map(problem => invalidValue('spec.username', username, problem)) : []
}
