// Edits sources while they are loaded, so that src/ needs no hook. fail-points.ts and bugs.ts define the edits.

import { registerHooks } from 'node:module'

/** `file` below src/; `from` must occur in it exactly once. */
export type Edit = { readonly file: string; readonly from: string; readonly to: string }

/** If an edit no longer matches, the program does not start and names the edit. */
export function applyEdits(name: string, edits: readonly Edit[]): void {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      const own = edits.filter(({ file }) => url.endsWith(`/src/${file}`))
      if (own.length === 0) return loaded
      return { ...loaded, source: own.reduce((source, edit) => edited(name, edit, source), String(loaded.source)) }
    },
  })
}

export function edited(name: string, { file, from, to }: Edit, source: string): string {
  if (source.split(from).length !== 2) throw new Error(`"${name}": its place is not once in ${file} any more: ${from}`)
  return source.replace(from, () => to)
}
