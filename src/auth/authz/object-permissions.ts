// Rights that come from an object itself: its owner, its access entries, what its kind says of it (D15, D23, D26).

import type { Caller } from '../../api/caller.ts'
import type { Kind, PermissionSubject } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import type { Target } from '../../api/permissions.ts'
import { teamOfGroup } from '../../kinds/team-uids.ts'

/** The right that allows an act on an object, in words; undefined: none does. */
export function objectRight(
  kind: Kind,
  object: Resource,
  caller: Caller,
  { verb, target: { subresource } }: { readonly verb: string; readonly target: Target },
  { may, teamUid }: Pick<PermissionSubject, 'may' | 'teamUid'>,
): string | undefined {
  const subject = { username: caller.username, teams: teamsOf(caller, teamUid), may, teamUid }
  const rights = kind.rights?.(object, subject) ?? []
  for (const { verbs, subresources, because } of rights) {
    if (!verbs.includes('*') && !verbs.includes(verb)) continue
    if (subresource === undefined || subresources.includes('*') || subresources.includes(subresource)) return because
  }
  return undefined
}

const teams = new WeakMap<Caller, PermissionSubject['teams']>()

/** Read from the groups once: a caller is the same object until a team changes. */
function teamsOf(caller: Caller, teamUid: PermissionSubject['teamUid']): PermissionSubject['teams'] {
  const known = teams.get(caller)
  if (known) return known
  const found = new Map<string, string | undefined>()
  for (const group of caller.groups) {
    const team = teamOfGroup(group)
    if (team !== undefined) found.set(team, teamUid(team))
  }
  teams.set(caller, found)
  return found
}
