// Selects the objects of a list, a watch or a deletecollection by namespace, selectors and permissions.

import type { Candidates } from '../api/candidates.ts'
import { badRequest } from '../api/errors.ts'
import { fieldPath, readAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import type { Filter, Selection } from '../api/resources.ts'
import { parseFieldSelector, parseLabelSelector, SelectorError } from '../api/selector.ts'
import type { Entry, Key, ListQuery, ListResult } from '../storage/store.ts'
import type { Context } from './context.ts'
import { openPart } from './unencrypted-part.ts'

type Test = (entry: Entry) => boolean

export type Selected = {
  readonly query: Pick<ListQuery, 'bucket' | 'namespace' | 'labels' | 'filter'>
  /** The candidates that the caller can see now, computed for each read. Empty if all objects are candidates. */
  readonly among: () => Pick<ListQuery, 'among'>
  /** undefined if everything is selected. */
  readonly matches: Test | undefined
  /** Set if the caller may not see everything that the selectors match. */
  readonly access: EntryAccess | undefined
  /** Set if the selection names one object, which needs no list. */
  readonly single: Key | undefined
}

/** Reading an old state needs both, because the latest state of the object may allow less than the old one (D71). */
export type EntryAccess = {
  /** Selectors and permission by the state of the entry, for entries of the selected namespace. */
  readonly matched: Test
  /** Permission by the latest state of the object. Skipped if the entry is the latest state. */
  readonly stillAllowed: Test
}

export function select(ctx: Context, kind: Kind, selection: Selection): Selected {
  const labels = read(() => parseLabelSelector(selection.labelSelector ?? ''))
  const fields = read(() => parseFieldSelector(selection.fieldSelector ?? '', fieldsOf(kind), ctx.gate.teamNamed))
  const tests: Test[] = []
  const namespace = kind.namespaced ? (selection.namespace ?? '') : ''
  if (!labels.empty) tests.push(entry => labels.matches(entry.labels))
  if (fields.terms.length) tests.push(entry => fields.matches(field => fieldOf(kind, entry, field)))
  const access = selection.only && accessOf(ctx, kind, tests, selection.only)
  const matches = access ? all([access.matched, access.stillAllowed]) : tests.length ? all(tests) : undefined
  const named = (field: string) => fields.terms.find(term => term.field === field && term.op === '=')?.value
  const [name, space] = [named('metadata.name'), namespace || named('metadata.namespace')]
  const single = name === undefined || (kind.namespaced && !space) ? undefined : { namespace: space ?? '', name }
  return {
    query: {
      bucket: kind.id,
      ...(namespace ? { namespace } : {}),
      ...(labels.equalities.length ? { labels: labels.equalities } : {}),
      ...(matches ? { filter: matches } : {}),
    },
    matches: namespace ? entry => entry.key.namespace === namespace && (!matches || matches(entry)) : matches,
    among: () => amongOf(single ? { terms: [], namespaces: [], refs: [single] } : selection.among?.()),
    access,
    single: single && { bucket: kind.id, ...single },
  }
}

const amongOf = (among: Candidates | undefined) => (among ? { among } : {})

const all =
  (tests: readonly Test[]): Test =>
  entry =>
    tests.every(test => test(entry))

function accessOf(ctx: Context, kind: Kind, selectors: readonly Test[], only: Filter): EntryAccess {
  const allows: Test = entry => only(openPart(kind, entry))
  return {
    matched: all([...selectors, allows]),
    stillAllowed: entry => {
      const last = ctx.store.last(entry)
      return last !== undefined && (last.revision === entry.revision || allows(last))
    },
  }
}

/** The selected objects of the current revision. */
export function stateOf({ store }: Context, { query, among, matches, single }: Selected): ListResult {
  if (!single) return store.list({ ...query, ...among() })
  const entry = store.get(single)
  const entries = entry && (matches?.(entry) ?? true) ? [entry] : []
  return { entries, revision: store.revision, more: false, remaining: 0 }
}

const fieldsOf = ({ namespaced, selectable }: Kind) => [
  'metadata.name',
  ...(namespaced ? ['metadata.namespace'] : []),
  ...Object.keys(selectable),
]

function fieldOf(kind: Kind, entry: Entry, field: string): string {
  if (field === 'metadata.name') return entry.key.name
  if (field === 'metadata.namespace') return entry.key.namespace
  const value = readAt(openPart(kind, entry) as unknown as JsonObject, fieldPath(field))
  return value === undefined ? (kind.selectable[field] ?? '') : String(value)
}

function read<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof SelectorError ? badRequest(error.message) : error
  }
}
