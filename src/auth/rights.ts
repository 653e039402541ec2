// Rights that come from an object itself: its owner, its access entries, what its kind says of it (D15, D23, D26).

import type { Caller } from '../api/caller.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Target } from '../api/permissions.ts'

const teamGroup = 'platform:team:'

/** The right that allows an act on an object, in words; undefined: none does. */
export function objectRight(
  kind: Kind,
  object: Resource,
  caller: Caller,
  { verb, target: { subresource } }: { readonly verb: string; readonly target: Target },
  may: (question: Question) => boolean,
): string | undefined {
  const rights = kind.rights?.(object, { username: caller.username, teams: teamsOf(caller), may }) ?? []
  for (const { verbs, subresources, because } of rights) {
    if (!verbs.includes('*') && !verbs.includes(verb)) continue
    if (subresource === undefined || subresources.includes('*') || subresources.includes(subresource)) return because
  }
  return undefined
}

const teams = new WeakMap<Caller, readonly string[]>()

/** Read from the groups once: a caller is the same object until a team changes. */
function teamsOf(caller: Caller): readonly string[] {
  const known = teams.get(caller)
  if (known) return known
  const found = caller.groups.flatMap(group => (group.startsWith(teamGroup) ? [group.slice(teamGroup.length)] : []))
  teams.set(caller, found)
  return found
}
