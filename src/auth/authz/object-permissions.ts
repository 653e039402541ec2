// Permissions from the object itself: its owner, its access entries, and the rules of its kind (D15, D23, D26).

import type { Caller } from '../../api/caller.ts'
import type { Kind, ObjectPermission, PermissionSubject } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import type { Target, VerbCheck } from '../../api/permissions.ts'
import { ProjectSecret } from '../../kinds/project-secret.ts'
import { type PullTarget, pullKey } from '../../kinds/pull-secrets.ts'
import { SharedSecret } from '../../kinds/shared-secret.ts'
import { teamOfGroup } from '../../kinds/team-uids.ts'

/** The image pull secrets of a team, by `pullKey`. */
export type PulledSecrets = (team: string) => ReadonlyMap<string, PullTarget & { readonly uid: string }> | undefined

export const pullableKinds: ReadonlySet<Kind> = new Set<Kind>([SharedSecret, ProjectSecret])

type Asking = Pick<PermissionSubject, 'may' | 'teamUid'> & { readonly pulled: PulledSecrets }

/** The permission that allows an action on an object, as text; undefined: none. */
export function objectRight(
  kind: Kind,
  object: Resource,
  caller: Caller,
  { verb, target: { subresource } }: { readonly verb: string; readonly target: Target },
  asking: Asking,
): string | undefined {
  for (const { verbs, subresources, because, subresourcesOnly } of rightsOn(kind, object, caller, asking)) {
    if (!verbs.includes('*') && !verbs.includes(verb)) continue
    if (
      subresource === undefined ? !subresourcesOnly : subresources.includes('*') || subresources.includes(subresource)
    )
      return because
  }
  return undefined
}

/** Evaluates the rights once, for many verbs and subresources. */
export function indexRights(rights: readonly ObjectPermission[]): VerbCheck {
  const all = new Set<string>()
  const bySubresource = new Map<string, Set<string>>()
  for (const { verbs, subresources, subresourcesOnly } of rights) {
    if (!subresourcesOnly) for (const verb of verbs) all.add(verb)
    for (const subresource of subresources) {
      const there = bySubresource.get(subresource) ?? new Set()
      bySubresource.set(subresource, there)
      for (const verb of verbs) there.add(verb)
    }
  }
  const has = (verbs: ReadonlySet<string> | undefined, verb: string) => verbs?.has('*') || verbs?.has(verb) || false
  return (verb, subresource) =>
    subresource === undefined
      ? has(all, verb)
      : has(bySubresource.get('*'), verb) || has(bySubresource.get(subresource), verb)
}

export function rightsOn(
  kind: Kind,
  object: Resource,
  caller: Caller,
  { may, teamUid, pulled }: Asking,
): readonly ObjectPermission[] {
  const teams = teamsOf(caller, teamUid)
  const own = kind.rights?.(object, { username: caller.username, teams, may, teamUid }) ?? []
  const pulling = pullableKinds.has(kind) ? pullingTeam(kind, object, teams.keys(), pulled) : undefined
  if (pulling === undefined) return own
  return [...own, { verbs: ['get'], subresources: [], because: `image pull secret of team ${pulling}` }]
}

/** The team whose members may get the secret as an image pull secret (D23). */
function pullingTeam(
  kind: Kind,
  { metadata: { namespace = '', name = '', uid } }: Resource,
  teams: Iterable<string>,
  pulled: PulledSecrets,
): string | undefined {
  const key = pullKey({ resource: kind.plural, namespace, name })
  for (const team of teams) if (uid !== undefined && pulled(team)?.get(key)?.uid === uid) return team
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
