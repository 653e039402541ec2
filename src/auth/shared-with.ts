// Which objects give a team rights by themselves, as their owner or through access entries: asked before somebody comes to act as it (D27).

import type { Kind, Who } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Shared } from '../api/permissions.ts'
import type { Resources } from '../api/resources.ts'

/** `uid` is undefined for a team that is about to be created. */
type Team = { readonly name: string; readonly uid: string | undefined }

/** A look through every object that may do so: for rare writes alone. The team's own object does not count. */
export async function sharedWith(inside: Resources, kinds: readonly Kind[], team: Team): Promise<readonly Shared[]> {
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
function givenTo(kind: Kind, object: Resource, { name, uid }: Team) {
  if (kind.plural === 'teams' && object.metadata.name === name) return []
  const rightsOf = (teams: Who['teams']) =>
    kind.rights?.(object, { username: '', teams, may: () => false, teamUid: () => undefined }) ?? []
  const common = new Set(rightsOf(new Map()).map(right => right.because))
  return rightsOf(new Map([[name, uid]])).filter(right => !common.has(right.because))
}
