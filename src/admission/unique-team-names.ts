// Keeps names and usernames of teams unique, also if two replicas write at the same moment (D23).
// All claims of a username write its record, so that the store accepts only one of them.

import type { Companion, Precondition } from '../api/admission.ts'
import { duplicateValue, invalid } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import { Team } from '../kinds/team.ts'
import { TeamUsernameRecord } from '../kinds/team-username-record.ts'

type TeamObject = ObjectOf<typeof Team>

export type TeamNameDependencies = {
  /** Names of the teams with this username. May lack a team that was written just now, unless that has a record. */
  readonly teamsWithUsername: (username: string) => readonly string[]
  /** The team that the record of a username belongs to, if it still has the username. */
  readonly usernameHolder: (username: string) => string | undefined
  /** Whether a team has this name, also while it is being deleted. */
  readonly isTeam: (name: string) => boolean
}

/** Objects may name a team by its username, so that no other team may have it as name or username (D23). */
export function checkUnique(
  { teamsWithUsername, usernameHolder, isTeam }: TeamNameDependencies,
  next: TeamObject,
  old: TeamObject | undefined,
): void {
  const { name = '' } = next.metadata
  const isTaken = (text: string) =>
    (usernameHolder(text) ?? name) !== name || teamsWithUsername(text).some(other => other !== name)
  const errors = []
  if (!old && isTaken(name)) errors.push(duplicateValue('metadata.name', name))
  const username = claimOf(next, old)
  if (username && (isTeam(username) || isTaken(username))) errors.push(duplicateValue('spec.username', username))
  if (errors.length) throw invalid(Team, name, errors)
}

/** The username that a write claims. The name of a team needs no record: the team itself has the key. */
function claimOf({ metadata, spec }: TeamObject, old: TeamObject | undefined): string | undefined {
  const username = spec?.username
  return username && username !== old?.spec?.username && username !== metadata.name ? username : undefined
}

export function usernameCompanions(old: TeamObject | undefined, next: TeamObject | undefined): readonly Companion[] {
  const username = next && claimOf(next, old)
  if (!username) return []
  const { name = '', uid = '' } = next.metadata
  const object = {
    metadata: {
      name: username,
      ownerReferences: [{ apiVersion: Team.apiVersion, kind: Team.kind, name, uid }],
    },
    spec: { team: name },
  }
  return [{ kind: TeamUsernameRecord, object, merge: () => object }]
}

/** A name must stay free of claims of others until the commit, and a claimed username must not become a name. */
export function teamPreconditions(
  dependencies: TeamNameDependencies,
  old: TeamObject | undefined,
  next: TeamObject | undefined,
): readonly Precondition[] {
  const username = next && claimOf(next, old)
  if (!next || (old && !username)) return []
  checkUnique(dependencies, next, old)
  return [
    ...(old ? [] : [{ kind: TeamUsernameRecord, ref: { namespace: '', name: next.metadata.name ?? '' } }]),
    ...(username ? [{ kind: Team, ref: { namespace: '', name: username } }] : []),
  ]
}
