// Defines candidates: the objects that a caller may be able to see.
// The authorizer describes them by terms, and the registry indexes objects by the same terms.

import type { Ref } from './object.ts'

/**
 * A superset of the objects that a filter keeps: objects with one of these terms, in one of these namespaces, or with
 * one of these names. The filter decides about each.
 */
export type Candidates = {
  readonly terms: readonly string[]
  readonly namespaces: readonly string[]
  readonly refs: readonly Ref[]
}

/** An object that refers to a user, for example as its owner. `*` is every user. */
export const userTerm = (user: string): string => `user/${user}`
/** An object that refers to a team. Its members may see it. */
export const memberTerm = (team: string): string => `member/${team}`
/** An owner-only object of a team. Callers who may update the team may see it. `*` is every team. */
export const editorTerm = (team: string): string => `editor/${team}`
/** An object in any namespace, because cluster-wide rules can list resourceNames. */
export const nameTerm = (name: string): string => `name/${name}`
