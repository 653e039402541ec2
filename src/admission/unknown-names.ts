// Warns about names in a write that refer to nothing, such as a team that does not exist.

import { cut } from '../api/errors.ts'

/** `what`: the kind of thing, such as `team`. `field`: the path of the name. */
export type UnknownName = { readonly field: string; readonly what: string; readonly name: string }

const maxWarnings = 10

/** One warning per name. The write succeeds, because the object may be created later. */
export function warnUnknownNames(warn: (text: string) => void, unknown: readonly UnknownName[]): void {
  const byName = new Map(unknown.map(one => [`${one.what} ${one.name}`, one]))
  const all = [...byName.values()]
  for (const { field, what, name } of all.slice(0, maxWarnings)) warn(`${field}: ${what} "${cut(name)}" does not exist`)
  if (all.length > maxWarnings) warn(`${all.length - maxWarnings} more names refer to nothing`)
}
