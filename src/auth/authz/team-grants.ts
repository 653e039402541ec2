// Finds the objects that grant permissions to a team or user: as owner, through access entries, or as image pull secrets. Joining the team needs these permissions (D27).

import { memberTerm, userTerm } from '../../api/candidates.ts'
import type { Grant } from '../../api/grant.ts'
import type { Kind } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import type { Shared } from '../../api/permissions.ts'
import type { Resources } from '../../api/resources.ts'
import { forEachInSlices } from '../../api/time-slices.ts'
import { teamGroup, teamMatcher } from '../../kinds/team-uids.ts'
import type { TeamRecord } from '../authn/team-index.ts'

/** `uid` is undefined for a team that is about to be created. */
type Team = { readonly name: string; readonly uid: string | undefined }

export async function sharedWith(
  internalClient: Resources,
  kinds: readonly Kind[],
  team: Team,
): Promise<readonly Shared[]> {
  // As a user, the team has the name of its group (D16).
  const terms = [memberTerm(team.name), userTerm(teamGroup(team.name))]
  return collect(internalClient, kinds, terms, (kind, object) => givenTo(kind, object, team))
}

/** Permissions that objects grant to a user by name. */
export const sharedWithUser = (
  internalClient: Resources,
  kinds: readonly Kind[],
  username: string,
): Promise<readonly Shared[]> =>
  collect(internalClient, kinds, [userTerm(username)], (kind, object) =>
    (kind.grants?.(object, { kind: 'user', name: username }) ?? []).flatMap(grant =>
      grant.to?.kind === 'user' && grant.to.name === username ? verbsOf(grant) : [],
    ),
  )

type GivenIn = (kind: Kind, object: Resource) => readonly Given[]

async function collect(
  internalClient: Resources,
  kinds: readonly Kind[],
  terms: readonly string[],
  givenIn: GivenIn,
): Promise<readonly Shared[]> {
  const found: Shared[] = []
  const candidates = { terms, namespaces: [], refs: [] }
  for (const kind of kinds) {
    if (!kind.stored || !kind.rights || kind.ownerOnly) continue
    const { items } = await internalClient.list(kind, { among: () => (kind.readers ? candidates : undefined) })
    // One user can own many large objects that name the team. Each is parsed here, not by the list.
    await forEachInSlices(items, ({ object }) => {
      const { namespace = '', name = '' } = object.metadata
      const target = { group: kind.group, resource: kind.plural, namespace, name }
      for (const { verbs, subresources } of givenIn(kind, object)) found.push({ verbs, subresources, target })
    })
  }
  return found
}

type Given = { readonly verbs: readonly string[]; readonly subresources: readonly string[] }

/** By ownership and access entries. Permissions of everybody, or of the members of all teams, do not count. */
function givenTo(kind: Kind, object: Resource, { name, uid }: Team): Given[] {
  const means = teamMatcher(object)
  return (kind.grants?.(object, { kind: 'team', name }) ?? []).flatMap((grant): Given[] => {
    if (grant.to?.kind !== 'team' || grant.to.name !== name || !means(name, uid)) return []
    return verbsOf(grant)
  })
}

function verbsOf(grant: Grant): Given[] {
  if (grant.type === 'owner') return [{ verbs: ['*'], subresources: ['*'] }]
  return grant.type === 'object' ? [grant] : []
}

/** The image pull secrets of a team (D23). */
export const pulledAsShared = (team: Pick<TeamRecord, 'pulled'> | undefined): Shared[] =>
  [...(team?.pulled.values() ?? [])].map(({ uid: _, ...target }) => ({ verbs: ['get'], subresources: [], target }))
