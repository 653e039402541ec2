// Team: checks unique usernames, warns about missing roles, sets conditions, revokes tokens of former members, and lists permissions.

import type { Admission } from '../api/admission.ts'
import { type Caller, systemCaller } from '../api/caller.ts'
import { forbidden } from '../api/errors.ts'
import type { ObjectOf, Question } from '../api/kind.ts'
import type { JsonObject, Ref } from '../api/object.ts'
import type { Decision, RuleLike, TeamPermissions } from '../api/permissions.ts'
import { withObserved, withRemote } from '../kinds/object-conditions.ts'
import { revokedByTeam } from '../kinds/revocation-triggers.ts'
import { Team } from '../kinds/team.ts'
import { localRoles, remoteRoles } from '../kinds/team-cluster-roles.ts'
import { checkUnique, type TeamNameDependencies, teamPreconditions, usernameCompanions } from './unique-team-names.ts'

type Dependencies = TeamNameDependencies & {
  readonly now: () => number
  readonly authorize: (caller: Caller, question: Question) => Decision
  /** The rules of a role; undefined if it does not exist. */
  readonly rulesOfRole: (kind: 'ClusterRole', ref: Ref) => readonly RuleLike[] | undefined
  /** Members of a team with the reason for each, and its permissions with the binding of each. */
  readonly permissionsOf: (team: string) => TeamPermissions
}

type TeamObject = ObjectOf<typeof Team>

export const teamAdmission = (dependencies: Dependencies): Admission<TeamObject> => {
  const { now, rulesOfRole, permissionsOf } = dependencies
  const missingRoles = (team: TeamObject) =>
    localRoles(team.spec).filter(name => !rulesOfRole('ClusterRole', inCluster(name)))
  return {
    admit: async (next, old, { warn, caller }) => {
      const known = new Set(localRoles(old?.spec))
      for (const name of localRoles(next.spec))
        if (!known.has(name) && !rulesOfRole('ClusterRole', inCluster(name)))
          warn(`spec.clusterRoles: cluster role "${name}" does not exist yet; the team gets its rules once it does`)
      checkClaim(dependencies, caller, next, old)
      checkUnique(dependencies, next, old)
      return { object: next }
    },
    observe: (next, old) => {
      const time = now()
      const observed = withObserved(next, old, { now: time, missingRoles: missingRoles(next) })
      const isWanted = remoteRoles(next.spec).length > 0
      return withRemote(observed, old, { type: 'ClusterRolesBound', isWanted, now: time })
    },
    companions: (old, next) => [...(old ? revokedByTeam(old, next, { now }) : []), ...usernameCompanions(old, next)],
    preconditions: (old, next) => teamPreconditions(dependencies, old, next),
    subresources: {
      permissions: async ({ metadata: { name = '' } }) => ({
        answer: {
          apiVersion: 'management.platform.sh/v1',
          kind: 'TeamPermissions',
          metadata: { name },
          status: permissionsOf(name) as unknown as JsonObject,
        },
      }),
    },
  }
}

/** Others may name the team by its username, so that claiming one needs the same permission as claiming a name. */
function checkClaim(
  { authorize }: Pick<Dependencies, 'authorize'>,
  caller: Caller,
  { metadata: { name = '' }, spec }: TeamObject,
  old: TeamObject | undefined,
): void {
  const username = spec?.username
  if (caller === systemCaller || !username || username === name || username === old?.spec?.username) return
  const target = { group: Team.group, resource: Team.plural, namespace: '' }
  if (!authorize(caller, { verb: 'create', target }).allowed)
    throw forbidden(
      Team,
      name,
      `spec.username: a username other than the name of the team needs permission to create teams`,
    )
}

const inCluster = (name: string): Ref => ({ namespace: '', name })
