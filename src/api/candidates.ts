// The objects that a caller can possibly see. The authorizer names them by terms, the registry indexes objects by the same terms.

import type { Ref } from './object.ts'

/**
 * A superset of what a filter keeps: objects with one of these terms, in one of these namespaces, or with one of these
 * names. The filter still decides about each.
 */
export type Candidates = {
  readonly terms: readonly string[]
  readonly namespaces: readonly string[]
  readonly refs: readonly Ref[]
}

/** An object that names a user, for example as its owner. `*` is every user. */
export const userTerm = (user: string): string => `user/${user}`
/** An object that names a team: its members may see it. */
export const memberTerm = (team: string): string => `member/${team}`
/** An object of a personal kind that belongs to a team: callers who may update the team may see it. `*` is every team. */
export const editorTerm = (team: string): string => `editor/${team}`
/** An object of a namespaced kind, in whatever namespace: cluster-wide rules can list resourceNames. */
export const nameTerm = (name: string): string => `name/${name}`
