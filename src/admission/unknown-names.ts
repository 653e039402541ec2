// Warns about names in a write that refer to nothing, such as a team that does not exist.

import type { Caller } from '../api/caller.ts'
import { cut } from '../api/errors.ts'
import type { Decision, Question } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'

/** `what`: the type of the object, such as `team`. `field`: the path of the name. `isStored`: the object had the name before. */
export type UnknownName = {
  readonly field: string
  readonly what: string
  readonly name: string
  readonly isStored: boolean
  /** What to do later. */
  readonly hint?: string
}

type Dependencies = { readonly authorize: (caller: Caller, question: Question) => Decision }

const maxWarnings = 10

/**
 * One warning per name. The write succeeds, because the object may be created later. Callers who may not get the object see
 * only the names that they sent (D6).
 */
export function warnUnknownNames(
  { authorize }: Dependencies,
  { kind, next, request: { caller, warn } }: GatedWrite,
  unknown: readonly UnknownName[],
): void {
  if (unknown.length === 0) return
  const { namespace = '', name: own = '' } = next.metadata
  const target = { group: kind.group, resource: kind.plural, namespace, name: own }
  const isShown = unknown.some(one => one.isStored) && authorize(caller, { verb: 'get', target }).allowed
  const shown = unknown.filter(({ isStored }) => isShown || !isStored)
  const byName = new Map(shown.map(one => [`${one.what} ${one.name}`, one]))
  const all = [...byName.values()]
  for (const { field, what, name, hint } of all.slice(0, maxWarnings))
    warn(`${field}: ${what} "${cut(name)}" does not exist${hint ? `; ${hint}` : ''}`)
  if (all.length > maxWarnings) warn(`${all.length - maxWarnings} more names refer to nothing`)
}
