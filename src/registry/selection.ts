// Which objects a list, a watch or a deletecollection is about: namespace, selectors, and what the caller may see.

import type { Candidates } from '../api/candidates.ts'
import { badRequest } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Filter, Selection } from '../api/resources.ts'
import { parseFieldSelector, parseLabelSelector, SelectorError } from '../api/selector.ts'
import type { Entry, Key, ListQuery, ListResult } from '../storage/store.ts'
import type { Context } from './context.ts'
import { openPart } from './unencrypted-part.ts'

type Test = (entry: Entry) => boolean

export type Selected = {
  readonly query: Pick<ListQuery, 'bucket' | 'namespace' | 'labels' | 'filter'>
  /** The entries that the caller can see now: for each read anew. Empty where these are all. */
  readonly among: () => Pick<ListQuery, 'among'>
  /** undefined where everything is selected. */
  readonly matches: Test | undefined
  /** Set where the caller may not see everything that the selectors select. */
  readonly access: EntryAccess | undefined
  /** Set when the selection names one object: no list is needed to find it. */
  readonly place: Key | undefined
}

/** Reading an old state needs both: the last state of the object may allow less than the state that is read (D71). */
export type EntryAccess = {
  /** Selectors and permission, by the state that the entry shows. For entries of the selected namespace. */
  readonly matched: Test
  /** Permission by the last state of the same object. Evaluates nothing if the entry is that state. */
  readonly stillAllowed: Test
}

export function select(ctx: Context, kind: Kind, selection: Selection): Selected {
  const labels = read(() => parseLabelSelector(selection.labelSelector ?? ''))
  const fields = read(() => parseFieldSelector(selection.fieldSelector ?? '', fieldsOf(kind)))
  const tests: Test[] = []
  const namespace = kind.namespaced ? (selection.namespace ?? '') : ''
  if (!labels.empty) tests.push(entry => labels.matches(entry.labels))
  if (fields.terms.length)
    tests.push(entry => fields.matches(field => (field === 'metadata.name' ? entry.key.name : entry.key.namespace)))
  const access = selection.only && accessOf(ctx, kind, tests, selection.only)
  const matches = access ? all([access.matched, access.stillAllowed]) : tests.length ? all(tests) : undefined
  const named = (field: string) => fields.terms.find(term => term.field === field && term.op === '=')?.value
  const [name, space] = [named('metadata.name'), namespace || named('metadata.namespace')]
  const place = name === undefined || (kind.namespaced && !space) ? undefined : { namespace: space ?? '', name }
  return {
    query: {
      bucket: kind.id,
      ...(namespace ? { namespace } : {}),
      ...(labels.equalities.length ? { labels: labels.equalities } : {}),
      ...(matches ? { filter: matches } : {}),
    },
    matches: namespace ? entry => entry.key.namespace === namespace && (!matches || matches(entry)) : matches,
    among: () => amongOf(place ? { terms: [], namespaces: [], refs: [place] } : selection.among?.()),
    access,
    place: place && { bucket: kind.id, ...place },
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

/** Everything selected as it is now. */
export function stateOf({ store }: Context, { query, among, matches, place }: Selected): ListResult {
  if (!place) return store.list({ ...query, ...among() })
  const entry = store.get(place)
  const entries = entry && (matches?.(entry) ?? true) ? [entry] : []
  return { entries, revision: store.revision, more: false, remaining: 0 }
}

const fieldsOf = (kind: Kind) => (kind.namespaced ? ['metadata.name', 'metadata.namespace'] : ['metadata.name'])

function read<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof SelectorError ? badRequest(error.message) : error
  }
}
