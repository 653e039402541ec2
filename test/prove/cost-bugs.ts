// Fixes of costly requests, reverted by edits of the sources. bugs.ts lists them; the cost prover must find each.
//
// Keep this table in step with src/: `from` must stand exactly once in `file`. When a fix moves, its hunt does not start and says so.
// Several fixes are limits (D72) in front of work that grows faster than its input: the limits are part of the fix.

import type { rows } from './cost/rows.ts'
import type { Edit } from './edits.ts'

const edit = (file: string, from: string, to: string): Edit => ({ file, from, to })

const withoutLimits: readonly Edit[] = [
  edit('api/schema.ts', 'const defaultMaxItems = 250', 'const defaultMaxItems = 1_000_000'),
  edit('http/body.ts', 'const maxValues = 50_000', 'const maxValues = 10_000_000'),
  edit('registry/object-codec.ts', 'if (size > maxSize && ', 'if (false && '),
]
const comparingScopes: readonly Edit[] = [
  edit('auth/authz/scope.ts', 'if (inner === outer || !restricts(outer))', 'if (!restricts(outer))'),
  edit('auth/authz/scope.ts', 'known.has(JSON.stringify(one)) || isCovered(one)', 'isCovered(one)'),
]
const comparingLabels: readonly Edit[] = [
  edit('storage/term-index.ts', '[new Set(previous), new Set(next)]', '[[...previous], [...next]]'),
  edit('storage/term-index.ts', 'after.has(term)', 'after.includes(term)'),
  edit('storage/term-index.ts', 'before.has(term)', 'before.includes(term)'),
]
const decryptingFilters: readonly Edit[] = [
  edit(
    'registry/selection.ts',
    "import { openPart } from './unencrypted-part.ts'",
    "import { presentAmong } from './undecryptable.ts'",
  ),
  edit('registry/selection.ts', 'only(openPart(kind, entry))', 'only(presentAmong(ctx, kind, entry).object)'),
]

/** `row`: the row of the prover that must fail. */
export const costBugs: {
  readonly [name: string]: { readonly row: keyof typeof rows; readonly edits: readonly Edit[] }
} = {
  'C1: copy a protobuf list for every item': {
    row: '40,000 empty finalizers in protobuf',
    edits: [
      edit(
        'http/protobuf.ts',
        'if (list) list.push(value)\n  else out[name] = [value]',
        'out[name] = [...(list ?? []), value]',
      ),
    ],
  },
  'C2: compare every rule of a scope with every other': {
    row: 'a key with 4,000 scope.rules, then a patch',
    edits: [...withoutLimits, ...comparingScopes],
  },
  'C3: compare every project of a scope with every other': {
    row: 'a key with 15,000 scope.projects, then a patch',
    edits: [...withoutLimits, ...comparingScopes],
  },
  'C4: compare every label with every other': {
    row: 'a key with 60,000 labels, then one label changed',
    edits: [...withoutLimits, ...comparingLabels],
  },
  'C5: decrypt what a list does not show': {
    row: '40 filtered lists among 300 secrets of 200 KB',
    edits: decryptingFilters,
  },
  'C6: decrypt what a watch does not show': { row: '20 filtered watches and one patch', edits: decryptingFilters },
}
