// Pins references to teams by uid (D61). Writes pin what they name; this controller pins the rest: references that were
// written before their team was created, and what an earlier version stored without a uid.

import { ignoreNotFound } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import { type Resources, refOf } from '../api/resources.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { Team } from '../kinds/team.ts'
import { teamUidsAnnotation, teamUidsOf, withTeamUids } from '../kinds/team-uids.ts'
import { latin1 } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type TeamReferencesOptions = {
  readonly resources: Resources
  /** Kinds whose objects name teams. */
  readonly kinds: readonly Kind[]
  /** The uid of a team that exists. */
  readonly teamUid: (name: string) => string | undefined
  readonly failed: (what: string, error: unknown) => void
}

/** The fields `team` and `teams`, and the groups of teams: one pass over the bytes, because every object passes here at start. */
const namesTeams = /team(?:s?":|:)/

/** An object that names teams without saying which. */
type Open = { readonly kind: Kind; readonly ref: Ref; readonly teams: readonly string[] }

/** No team has it: a key of an earlier version whose team is gone stays without one. */
const nobody = 'none'

export function startTeamReferences({ resources, kinds, teamUid, failed }: TeamReferencesOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const open = new Map<string, Open>()
  /** Slots of open objects, by the team they name. */
  const waiting = new Map<string, Set<string>>()
  const loop = startLoop({
    reconcile: async slot => {
      const one = open.get(slot)
      if (one) await pin(resources, one, teamUid)
      return undefined
    },
    failed: (slot, error) => failed(`pinning the teams of ${slot}`, error),
  })
  const follow = (slot: string, now: Open | undefined) => {
    for (const team of open.get(slot)?.teams ?? []) {
      waiting.get(team)?.delete(slot)
      if (waiting.get(team)?.size === 0) waiting.delete(team)
    }
    if (!now?.teams.length) return void open.delete(slot)
    open.set(slot, now)
    for (const team of now.teams) waiting.set(team, (waiting.get(team) ?? new Set()).add(slot))
    if (now.kind === OwnedAccessKey || now.teams.some(team => teamUid(team) !== undefined)) loop.add(slot)
  }
  const referring = kinds.map(kind =>
    startInformer({
      resources,
      kind,
      counts: ({ json }) => namesTeams.test(latin1(json)),
      keep: object => ({ kind, ref: refOf(object), teams: openTeams(kind, object) }),
      changed: (ref, now) => follow(`${kind.plural}/${ref.namespace}/${ref.name}`, now),
      failed: error => failed(`watching ${kind.plural}`, error),
    }),
  )
  const teams = startInformer({
    resources,
    kind: Team,
    counts: ({ ref }) => waiting.has(ref.name),
    keep: ({ metadata }) => metadata.uid,
    changed: ({ name }) => {
      for (const slot of waiting.get(name) ?? []) loop.add(slot)
    },
    failed: error => failed('watching teams', error),
  })
  return {
    ready: Promise.all([...referring, teams].map(informer => informer.ready)).then(() => {}),
    idle: loop.idle,
    async stop() {
      for (const informer of [...referring, teams]) informer.stop()
      await loop.stop()
    },
  }
}

/** Teams that an object names and has no uid of. */
function openTeams(kind: Kind, object: Resource): readonly string[] {
  const known = teamUidsOf(object)
  const named = (kind.grants?.(object) ?? []).flatMap(({ to }) => (to?.kind === 'team' ? [to.name] : []))
  return [...new Set(named)].filter(team => !Object.hasOwn(known, team))
}

async function pin(
  resources: Resources,
  { kind, ref }: Open,
  teamUid: TeamReferencesOptions['teamUid'],
): Promise<void> {
  const object = await resources.get(kind, ref).then(document => document.object, ignoreNotFound)
  if (!object) return
  const uids: { [team: string]: string } = { ...teamUidsOf(object) }
  for (const team of openTeams(kind, object)) {
    const uid = teamUid(team) ?? (kind === OwnedAccessKey ? nobody : undefined)
    if (uid !== undefined) uids[team] = uid
  }
  const { annotations, resourceVersion = '' } = withTeamUids(object, uids).metadata
  const value = annotations?.[teamUidsAnnotation]
  if (value === undefined || value === object.metadata.annotations?.[teamUidsAnnotation]) return
  // Of this very version: after a change of the object the informer comes back with it.
  const body = { metadata: { resourceVersion, annotations: { [teamUidsAnnotation]: value } } }
  await resources.patch(kind, ref, { type: 'merge', body }, { fieldManager: 'team-references' })
}
