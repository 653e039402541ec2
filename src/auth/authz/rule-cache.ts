// A cache of computed rules per user and namespace. Any change of a role, binding or team clears it.

import { ownText } from '../../api/own-text.ts'
import { teamOfGroup } from '../../kinds/team-uids.ts'

export type Holder = { readonly username: string; readonly groups: readonly string[] }

/** The rules of one holder by namespace, or by a similar key. */
type Spaces<T> = {
  get(key: string): T | undefined
  /** Ignores keys that are longer than a namespace can be, because a caller can ask about any text. */
  set(key: string, value: T): void
}
const maxHolders = 10_000
/** Of the encoded names of a holder. The access keys of a holder with longer names share no rules. */
const maxNameLength = 8192
const maxSpaces = 64
const maxKeyLength = 253

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
      const spaces = byName.get(name) ?? openSpaces<T>()
      // A caller can ask about any number of users with names of any length, so the cache is bounded.
      if (name.length <= maxNameLength) {
        if (byName.size >= maxHolders) byName.clear()
        byName.set(name, spaces)
      }
      byHolder.set(holder, spaces)
      return spaces
    },
    forget: () => {
      byHolder = new WeakMap()
      byName.clear()
    },
  }
}

function openSpaces<T>(): Spaces<T> {
  const spaces = new Map<string, T>()
  return {
    get: key => spaces.get(key),
    set(key, value) {
      if (key.length > maxKeyLength) return
      if (spaces.size >= maxSpaces) spaces.clear()
      spaces.set(ownText(key), value)
    },
  }
}
