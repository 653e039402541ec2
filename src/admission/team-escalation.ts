// What comes with acting as a team: nobody gives a place in it, or a key of it, who could not do the same (D14, D27).

import { forbidden } from '../api/errors.ts'
import type { RuleLike } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { teamGroup } from '../kinds/team-uids.ts'
import { refuseMissing, roleTarget } from './missing-permissions.ts'

const everything: RuleLike = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

/** The write is of the team itself, or of a key of it. */
export async function checkTeamPower(check: GatedWrite, team: string): Promise<void> {
  const { kind, next, tools } = check
  const group = teamGroup(team)
  for (const { rules, namespace, role } of tools.boundTo(group))
    await refuseMissing(check, { rules, namespace, source: roleTarget(role) })
  // Looking through all objects is for callers of whom nothing better is known.
  // A key of the team also has its username, which members have not (D16).
  const isMember = kind.kind === 'Team' && tools.caller.groups.includes(group) && tools.isWithinScope(undefined)
  if (isMember || tools.missing([everything], '').length === 0) return
  for (const { verbs, subresources, target } of await tools.sharedWith(team))
    for (const verb of verbs)
      for (const subresource of [undefined, ...subresources]) {
        const asked = subresource ? { ...target, subresource } : target
        if ((await tools.judge({ verb, target: asked })).allowed) continue
        const where = target.namespace ? ` in the namespace "${target.namespace}"` : ''
        // The object is named only to a caller who may see it.
        const isSeen = (await tools.judge({ verb: 'get', target })).allowed
        const what = isSeen ? `${verb} ${target.resource} "${target.name}"${where}` : `${verb} ${target.resource}`
        throw forbidden(
          kind,
          next.metadata.name ?? '',
          `team "${team}" has rights that user "${tools.caller.username}" does not have: ${what}`,
        )
      }
}
