// A cache of computed rules per user and namespace. Any change of a role, binding or team clears it.

import { teamOfGroup } from '../../kinds/team-uids.ts'

export type Holder = { readonly username: string; readonly groups: readonly string[] }

type Spaces<T> = Map<string, T>
const maxHolders = 10_000

/** Shared by all keys of a user, because there may be very many. */
export function openRuleCache<T>(teamUid: (team: string) => string | undefined): {
  of(holder: Holder): Spaces<T>
  forget(): void
} {
  let byHolder = new WeakMap<Holder, Spaces<T>>()
  const byName = new Map<string, Spaces<T>>()
  return {
    of(holder) {
      const known = byHolder.get(holder)
      if (known) return known
      // An unambiguous encoding of the names. A team that was created again is a different team (D61).
      const teams = [holder.username, ...holder.groups].flatMap(group => {
        const team = teamOfGroup(group)
        return team === undefined ? [] : [teamUid(team) ?? '']
      })
      const name = JSON.stringify([holder.username, holder.groups, teams])
      const spaces = byName.get(name) ?? new Map<string, T>()
      // A caller can ask about any number of users, so the cache is bounded.
      if (byName.size >= maxHolders) byName.clear()
      byName.set(name, spaces)
      byHolder.set(holder, spaces)
      return spaces
    },
    forget: () => {
      byHolder = new WeakMap()
      byName.clear()
    },
  }
}
