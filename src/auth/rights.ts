// Rights that come from an object itself: its owner, its access entries, what its kind says of it (D15, D23, D26).

import type { Caller } from '../api/caller.ts'
import type { Kind, Question, Target } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'

const teamGroup = 'platform:team:'

/** The right that allows an act on an object, in words; undefined: none does. */
export function objectRight(
  kind: Kind,
  object: Resource,
  caller: Caller,
  { verb, target: { subresource } }: { readonly verb: string; readonly target: Target },
  may: (question: Question) => boolean,
): string | undefined {
  const teams = caller.groups.flatMap(group => (group.startsWith(teamGroup) ? [group.slice(teamGroup.length)] : []))
  const who = { username: caller.username, teams, may }
  const right = kind.rights?.(object, who).find(one => {
    if (!one.verbs.includes('*') && !one.verbs.includes(verb)) return false
    return subresource === undefined || one.subresources.includes('*') || one.subresources.includes(subresource)
  })
  return right?.because
}
