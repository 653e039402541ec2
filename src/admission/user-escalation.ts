// Checks that callers hold everything that a username holds before they create, enable or link its User, or delete a disabled one (D60, D63).

import type { Grant } from '../api/grant.ts'
import type { BoundRules, RuleLike, Shared } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { refuseMissing, roleTarget } from './missing-permissions.ts'
import { checkShared, checkTeamPower, type TeamDependencies } from './team-escalation.ts'

const everything: readonly RuleLike[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

export type UserDependencies = TeamDependencies & {
  /**
   * The rules bound to a user and to the groups of the user's keys, and the user's teams. `signsIn`: also those of all
   * groups that the identity provider may give to the user.
   */
  readonly heldByUser: (
    username: string,
    signsIn: boolean,
  ) => {
    readonly bound: readonly BoundRules[]
    readonly teams: readonly string[]
  }
  /** Permissions of a user from objects themselves. Scans all objects. */
  readonly sharedWithUser: (username: string) => Promise<readonly Shared[]>
}

/** The username of a disabled User, from its grants; undefined: another object. */
export function disabledUser(grants: readonly Grant[]): string | undefined {
  const ofUser = grants.filter(one => one.type === 'user')
  return ofUser.some(({ field }) => field === 'spec.disabled') ? undefined : ofUser[0]?.user
}

/** Members may get their team and its permissions (D26). */
const membership = (name: string): Shared => ({
  verbs: ['get'],
  subresources: ['permissions'],
  target: { group: 'management.platform.sh', resource: 'teams', namespace: '', name },
})

export async function checkUserPower(
  dependencies: UserDependencies,
  check: GatedWrite,
  username: string,
): Promise<void> {
  const { caller } = check.request
  const { compareRules, heldByUser, sharedWithUser } = dependencies
  if ((await compareRules(caller, everything, '')).hasAll) return
  // A disabled user cannot sign in. Without a User, everybody can: creating one gives no groups.
  const { bound, teams } = heldByUser(username, check.old !== undefined)
  for (const { rules, namespace, role } of bound)
    await refuseMissing(dependencies, check, { rules, namespace, source: roleTarget(role) })
  for (const team of teams) await checkTeamPower(dependencies, check, team)
  await checkShared(dependencies, check, { who: `user "${username}"`, shared: teams.map(membership) })
  // Callers have what their own username holds. A scoped key does not get here.
  if (caller.identity === 'User' && caller.username === username) return
  await checkShared(dependencies, check, { who: `user "${username}"`, shared: await sharedWithUser(username) })
}
