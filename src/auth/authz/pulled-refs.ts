// The image pull secrets of the teams of a caller, each once. Lists of secrets look them up (D23, D27).

import type { Caller } from '../../api/caller.ts'
import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'
import { teamOfGroup } from '../../kinds/team-uids.ts'
import type { PulledSecrets } from './object-permissions.ts'

/** The secrets of one team. A change of the team replaces the map. */
type OfTeam = NonNullable<ReturnType<PulledSecrets>>
type Target = OfTeam extends ReadonlyMap<string, infer T> ? T : never

/** `teams`: how many of the merged teams have the secret. */
type Counted = { readonly target: Target; teams: number }
type Merged = { readonly maps: Set<OfTeam>; readonly secrets: Map<string, Counted> }

/** Callers with fewer entries are merged for each list. */
const fewEntries = 1000
const maxUsers = 1000

/**
 * A user can be a member of many teams that have the same secrets. So the merged secrets of such a user are kept, and only
 * teams that changed since are merged again.
 */
export function openPulledRefs(pulled: PulledSecrets): (caller: Caller, kind: Kind) => Ref[] {
  const byUser = new Map<string, Merged>()
  return ({ username, groups }, kind) => {
    const maps = new Set<OfTeam>()
    let entries = 0
    for (const group of groups) {
      const team = teamOfGroup(group)
      const map = team === undefined ? undefined : pulled(team)
      if (!map?.size) continue
      maps.add(map)
      entries += map.size
    }
    const merged = byUser.get(username) ?? { maps: new Set(), secrets: new Map() }
    merge(merged, maps)
    if (entries <= fewEntries) byUser.delete(username)
    else {
      if (byUser.size >= maxUsers) byUser.clear()
      byUser.set(username, merged)
    }
    const refs: Ref[] = []
    for (const { target } of merged.secrets.values()) if (target.resource === kind.plural) refs.push(target)
    return refs
  }
}

function merge({ maps, secrets }: Merged, wanted: ReadonlySet<OfTeam>): void {
  for (const map of maps) {
    if (wanted.has(map)) continue
    maps.delete(map)
    for (const key of map.keys()) {
      const found = secrets.get(key)
      if (found && --found.teams === 0) secrets.delete(key)
    }
  }
  for (const map of wanted) {
    if (maps.has(map)) continue
    maps.add(map)
    for (const [key, target] of map) {
      const found = secrets.get(key)
      if (found) found.teams++
      else secrets.set(key, { target, teams: 1 })
    }
  }
}
