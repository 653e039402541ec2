// Which objects give a team rights by themselves, as their owner or through access entries: asked before somebody comes to act as it (D27).

import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Shared } from '../api/permissions.ts'
import type { Resources } from '../api/resources.ts'

/** A look through every object that may do so: for rare writes alone. The team's own object does not count. */
export async function sharedWith(inside: Resources, kinds: readonly Kind[], team: string): Promise<readonly Shared[]> {
  const found: Shared[] = []
  for (const kind of kinds) {
    if (!kind.stored || !kind.rights || kind.personal) continue
    const { items } = await inside.list(kind, { only: object => givenTo(kind, object, team).length > 0 })
    for (const { object } of items)
      for (const { verbs, subresources } of givenTo(kind, object, team)) {
        const { namespace = '', name = '' } = object.metadata
        found.push({ verbs, subresources, target: { group: kind.group, resource: kind.plural, namespace, name } })
      }
  }
  return found
}

/** What everyone has is no gift to a team. */
function givenTo(kind: Kind, object: Resource, team: string) {
  if (kind.plural === 'teams' && object.metadata.name === team) return []
  const rightsOf = (teams: readonly string[]) => kind.rights?.(object, { username: '', teams, may: () => false }) ?? []
  const common = new Set(rightsOf([]).map(right => right.because))
  return rightsOf([team]).filter(right => !common.has(right.because))
}
