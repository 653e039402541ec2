// Checks that a caller may let the server act with the permissions of the owner of an object.

import type { Caller } from '../api/caller.ts'
import { forbidden } from '../api/errors.ts'
import type { Decision, Question } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { teamGroup, teamOfGroup } from '../kinds/team-uids.ts'

export type ActsForDependencies = {
  readonly authorize: (caller: Caller, question: Question) => Decision
  /** The owner of an object as a caller; undefined: no owner, or a team that does not exist. */
  readonly callerOf: (owner: {
    readonly user?: string | undefined
    readonly team?: string | undefined
    readonly uid?: string | undefined
  }) => Caller | undefined
}

type For = {
  readonly owner: { readonly user?: string | undefined; readonly team?: string | undefined }
  /** The field that lets the server act. */
  readonly field: string
}

/**
 * Callers name themselves, a team that they may update, or a user whom they may impersonate. Otherwise a reader could keep the server
 * acting in the name of somebody else after losing access.
 */
export function checkActsFor(
  { authorize }: ActsForDependencies,
  { kind, next, request: { caller } }: GatedWrite,
  { owner, field }: For,
): void {
  const refuse = (why: string) => forbidden(kind, next.metadata.name ?? '', why)
  const team = owner.user ? teamOfGroup(owner.user) : owner.team
  const actsAsTeam = team !== undefined && caller.identity === 'Team' && caller.username === teamGroup(team)
  const mayUpdate = {
    verb: 'update',
    target: { group: kind.group, resource: 'teams', namespace: '', name: team ?? '' },
  }
  if (team !== undefined && !actsAsTeam && !authorize(caller, mayUpdate).allowed)
    throw refuse(`setting ${field} on a secret owned by team "${team}" requires permission to update the team`)
  const mayAct = {
    verb: 'impersonate',
    target: { group: '', resource: 'users', namespace: '', name: owner.user ?? '' },
  }
  if (owner.user && team === undefined && owner.user !== caller.username && !authorize(caller, mayAct).allowed)
    throw refuse(
      `setting ${field} on a secret owned by user "${owner.user}" requires permission to impersonate the user; own the secret yourself, or let a team own it`,
    )
}
