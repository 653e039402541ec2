// Membership in a team and keys of a team give all that the team has: only callers who hold as much may give them (D14, D27).

import { forbidden } from '../api/errors.ts'
import type { BoundRules, RuleLike, Shared } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { teamGroup } from '../kinds/team-uids.ts'
import { type PermissionDependencies, refuseMissing, roleTarget } from './missing-permissions.ts'

const everything: RuleLike = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

export type TeamDependencies = PermissionDependencies & {
  /** Whether one scope is no wider than another (D25). */
  readonly isNoWider: (inner: unknown, outer: unknown) => boolean
  /** The rules of all roles that are bound to a group. */
  readonly boundTo: (group: string) => readonly BoundRules[]
  /** Permissions that objects themselves give a team. Scans all objects. */
  readonly sharedWith: (team: string) => Promise<readonly Shared[]>
}

/** For a write of the team itself, or of a key of it. */
export async function checkTeamPower(dependencies: TeamDependencies, check: GatedWrite, team: string): Promise<void> {
  const { authorize, missingRules, isNoWider, boundTo, sharedWith } = dependencies
  const { kind, next, request } = check
  const { caller } = request
  const group = teamGroup(team)
  for (const { rules, namespace, role } of boundTo(group))
    refuseMissing(dependencies, check, { rules, namespace, source: roleTarget(role) })
  // The scan is only for callers who are neither members nor hold everything.
  // A key of the team also has the username of the team, which members do not have (D16).
  const isMember = kind.kind === 'Team' && caller.groups.includes(group) && isNoWider(undefined, caller.scope)
  if (isMember || missingRules(caller, [everything], '').length === 0) return
  for (const { verbs, subresources, target } of await sharedWith(team))
    for (const verb of verbs)
      for (const subresource of [undefined, ...subresources]) {
        const asked = subresource ? { ...target, subresource } : target
        if (authorize(caller, { verb, target: asked }).allowed) continue
        const where = target.namespace ? ` in the namespace "${target.namespace}"` : ''
        // The object is named only to a caller who may see it.
        const isSeen = authorize(caller, { verb: 'get', target }).allowed
        const what = isSeen ? `${verb} ${target.resource} "${target.name}"${where}` : `${verb} ${target.resource}`
        throw forbidden(
          kind,
          next.metadata.name ?? '',
          `team "${team}" has rights that user "${caller.username}" does not have: ${what}`,
        )
      }
}
