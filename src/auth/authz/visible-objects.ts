// Finds the objects that a caller may be able to see, so that a filtered list need not evaluate every stored object (D27).

import type { Caller } from '../../api/caller.ts'
import { type Candidates, editorTerm, memberTerm, nameTerm, userTerm } from '../../api/candidates.ts'
import type { Kind, Question } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import type { Decision } from '../../api/permissions.ts'
import { Team } from '../../kinds/team.ts'
import { teamOfGroup } from '../../kinds/team-uids.ts'
import { type PulledSecrets, pullableKinds } from './object-permissions.ts'
import { openPulledRefs } from './pulled-refs.ts'
import type { Rbac } from './rbac.ts'
import { namespacesWithin } from './scope.ts'

export type VisibleOptions = {
  readonly rbac: Pick<Rbac, 'reach'>
  /** Stored objects that are among candidates. */
  readonly among: (kind: Kind, candidates: Candidates) => readonly Resource[]
  readonly decide: (caller: Caller, question: Question, object: Resource) => Decision
  readonly pulled: PulledSecrets
}

/** Returns the candidates of a list or watch; undefined: every object of the kind. */
export type Visible = (caller: Caller, kind: Kind, verb: string) => Candidates | undefined

export function openVisible({ rbac, among, decide, pulled }: VisibleOptions): Visible {
  const pulledRefs = openPulledRefs(pulled)
  const byRights = (caller: Caller, kind: Kind, verbs: readonly string[]): Candidates | undefined => {
    // A kind that does not declare its readers cannot be indexed.
    if (caller.groups.includes('system:masters') || (kind.rights && !kind.readers)) return undefined
    // The same verbs as in the authorizer: for a personal kind, all of them (D15).
    const wantedVerbs = kind.ownerOnly ? ['*'] : verbs
    const { all, namespaces, names, refs } = rbac.reach(
      caller,
      { group: kind.group, resource: kind.plural },
      wantedVerbs,
    )
    if (all) return undefined
    const named = kind.namespaced ? [] : names.map(name => ({ namespace: '', name }))
    return {
      terms: [
        ...(kind.readers ? ownTerms(caller) : []),
        ...(kind.ownerOnly ? editorTerms(caller) : []),
        ...(kind.namespaced ? names.map(nameTerm) : []),
      ],
      namespaces,
      refs: [...refs, ...named, ...(pullableKinds.has(kind) ? pulledRefs(caller, kind) : [])],
    }
  }

  /** For the teams that the caller may update. */
  const editorTerms = (caller: Caller): readonly string[] => {
    const candidates = byRights(caller, Team, ['update'])
    if (!candidates) return [editorTerm('*')]
    const editable = among(Team, candidates).filter(team => decide(caller, updateOf(team), team).allowed)
    // A role can name a team that does not exist but has keys.
    const names = [...candidates.refs.map(({ name }) => name), ...editable.map(({ metadata }) => metadata.name ?? '')]
    return names.map(editorTerm)
  }

  return (caller, kind, verb) => {
    const within = namespacesWithin(caller.scope, { group: kind.group, resource: kind.plural })
    if (within?.length === 0) return none
    return byRights(caller, kind, ['get', verb]) ?? (within && { ...none, namespaces: within })
  }
}

const none: Candidates = { terms: [], namespaces: [], refs: [] }

/** The terms of objects that refer to the caller. */
export const ownTerms = ({ username, groups }: Caller): string[] => [
  userTerm(username),
  userTerm('*'),
  ...groups.flatMap(group => {
    const team = teamOfGroup(group)
    return team === undefined ? [] : [memberTerm(team)]
  }),
]

const updateOf = ({ metadata: { name = '' } }: Resource): Question => ({
  verb: 'update',
  target: { group: Team.group, resource: Team.plural, namespace: '', name },
})
