// Checks that callers have all permissions of a team before they add members or create keys of the team (D14, D27).

import { forbidden } from '../api/errors.ts'
import type { BoundRules, RuleLike, Shared, Target, VerbCheck } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { pause } from '../api/time-slices.ts'
import { teamGroup } from '../kinds/team-uids.ts'
import { type ClusterDependencies, checkTeamClusterRoles } from './cluster-grants.ts'
import { type PermissionDependencies, refuseMissing, roleTarget } from './missing-permissions.ts'

const everything: RuleLike = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

export type TeamDependencies = PermissionDependencies &
  ClusterDependencies & {
    /** Whether one scope is at most as wide as another (D25). */
    readonly isNoWider: (inner: unknown, outer: unknown) => boolean
    /** The rules of all roles that are bound to a group. */
    readonly boundTo: (group: string) => readonly BoundRules[]
    /** Permissions of a team from objects themselves. Scans all objects. */
    readonly sharedWith: (team: string) => Promise<readonly Shared[]>
  }

/** How many verbs are checked between two looks at the clock. */
const pieceOf = 16
/** The most combinations of object, verb and subresource that one write checks. */
const maxCombinations = 200_000

/** For a write of the team, or of a key of the team. */
export async function checkTeamPower(dependencies: TeamDependencies, check: GatedWrite, team: string): Promise<void> {
  const { compareRules, isNoWider, boundTo, sharedWith } = dependencies
  const { kind, old, request } = check
  const { caller } = request
  const group = teamGroup(team)
  for (const { rules, namespace, role } of boundTo(group))
    await refuseMissing(dependencies, check, { rules, namespace, source: roleTarget(role) })
  checkTeamClusterRoles(dependencies, check, team)
  // Members and administrators need no scan. A key of the team also has the username of the team, which members do not
  // have (D16). A group that is impersonated before its team exists gives nothing.
  const isMember =
    kind.kind === 'Team' && old !== undefined && caller.groups.includes(group) && isNoWider(undefined, caller.scope)
  if (isMember || (await compareRules(caller, [everything], '')).hasAll) return
  await checkShared(dependencies, check, { who: `team "${team}"`, shared: await sharedWith(team) })
}

type SharedPower = {
  /** The team or user, for messages. */
  readonly who: string
  readonly shared: readonly Shared[]
}

/** Throws 403 if the caller does not have what objects grant to a team or user. */
export async function checkShared(
  { authorize, verbCheck }: TeamDependencies,
  { kind, next, request: { caller } }: GatedWrite,
  { who, shared }: SharedPower,
): Promise<void> {
  let last: Target | undefined
  let count = 0
  let combinations = 0
  let may: VerbCheck = () => false
  for (const { verbs, subresources, target } of shared) {
    // An object can grant permissions in many access entries. They come one after the other, with the same target.
    if (target !== last) {
      await pause()
      may = verbCheck(caller, target)
      last = target
    }
    for (const verb of verbs) {
      if (++count % pieceOf === 0) await pause()
      combinations += 1 + subresources.length
      if (combinations > maxCombinations)
        throw forbidden(
          kind,
          next.metadata.name ?? '',
          `objects grant ${who} more than ${maxCombinations} combinations of verb, subresource and object, which is too much to compare; use * for many verbs or subresources, or let an administrator make the change`,
        )
      for (const subresource of [undefined, ...subresources]) {
        if (may(verb, subresource || undefined)) continue
        const where = target.namespace ? ` in the namespace "${target.namespace}"` : ''
        // Name the object only if the caller may see it.
        const isSeen = authorize(caller, { verb: 'get', target }).allowed
        const what = isSeen ? `${verb} ${target.resource} "${target.name}"${where}` : `${verb} ${target.resource}`
        throw forbidden(
          kind,
          next.metadata.name ?? '',
          `${who} has permissions that user "${caller.username}" does not have: ${what}`,
        )
      }
    }
  }
}
