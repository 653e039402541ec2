// Team: checks unique usernames, warns about missing roles, revokes tokens of former members, and lists permissions.

import type { Admission } from '../api/admission.ts'
import { duplicateValue, invalid } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { JsonObject, Ref } from '../api/object.ts'
import type { RuleLike, TeamPermissions } from '../api/permissions.ts'
import { withObserved } from '../kinds/object-conditions.ts'
import { revokedByTeam } from '../kinds/revocation-triggers.ts'
import { Team } from '../kinds/team.ts'

type Dependencies = {
  readonly now: () => number
  /** The rules of a role; undefined if it does not exist. */
  readonly rulesOfRole: (kind: 'ClusterRole', ref: Ref) => readonly RuleLike[] | undefined
  /** Name of the team with this username. */
  readonly teamWithUsername: (username: string) => string | undefined
  /** Members of a team with the reason for each, and its permissions with the binding of each. */
  readonly permissionsOf: (team: string) => TeamPermissions
}

export const teamAdmission = (dependencies: Dependencies): Admission<ObjectOf<typeof Team>> => {
  const { now, rulesOfRole, teamWithUsername, permissionsOf } = dependencies
  const missingRoles = (team: ObjectOf<typeof Team>) =>
    (team.spec?.clusterRoles ?? []).flatMap(({ name = '' }) =>
      rulesOfRole('ClusterRole', inCluster(name)) ? [] : [name],
    )
  return {
    admit: async (next, old, { warn }) => {
      for (const { name = '' } of next.spec?.clusterRoles ?? [])
        if (!old?.spec?.clusterRoles?.some(one => one.name === name) && !rulesOfRole('ClusterRole', inCluster(name)))
          warn(`spec.clusterRoles: cluster role "${name}" does not exist yet; the team gets its rules once it does`)
      const { name = '' } = next.metadata
      const username = next.spec?.username
      // A username belongs to one team (D23).
      const other = username === old?.spec?.username || username === undefined ? undefined : teamWithUsername(username)
      if (other !== undefined && other !== name) throw invalid(Team, name, [duplicateValue('spec.username', username)])
      return { object: next }
    },
    observe: (next, old) => withObserved(next, old, { now: now(), missingRoles: missingRoles(next) }),
    companions: (old, next) => revokedByTeam(old, next, { now }),
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

const inCluster = (name: string): Ref => ({ namespace: '', name })
