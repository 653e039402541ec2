// Which objects a list, a watch or a deletecollection is about: namespace, selectors, and what the caller may see.

import { badRequest } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Selection } from '../api/resources.ts'
import { parseFieldSelector, parseLabelSelector, SelectorError } from '../api/selector.ts'
import type { Entry, Key, ListQuery, ListResult } from '../storage/store.ts'
import { presentAmong } from './broken-seal.ts'
import type { Context } from './context.ts'

export type Selected = {
  readonly query: Pick<ListQuery, 'bucket' | 'namespace' | 'labels' | 'filter'>
  /** undefined where everything is selected. */
  readonly matches: ((entry: Entry) => boolean) | undefined
  /** Set when the selection names one object: no list is needed to find it. */
  readonly place: Key | undefined
}

export function select(ctx: Context, kind: Kind, selection: Selection): Selected {
  const labels = read(() => parseLabelSelector(selection.labelSelector ?? ''))
  const fields = read(() => parseFieldSelector(selection.fieldSelector ?? '', fieldsOf(kind)))
  const tests: ((entry: Entry) => boolean)[] = []
  const namespace = kind.namespaced ? (selection.namespace ?? '') : ''
  if (!labels.empty) tests.push(entry => labels.matches(entry.labels))
  if (fields.terms.length)
    tests.push(entry => fields.matches(field => (field === 'metadata.name' ? entry.key.name : entry.key.namespace)))
  const only = selection.only
  if (only) tests.push(entry => only(presentAmong(ctx, kind, entry).object))
  const matches = tests.length ? (entry: Entry) => tests.every(test => test(entry)) : undefined
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
    place: place && { bucket: kind.id, ...place },
  }
}

/** Everything selected as it is now. */
export function stateOf({ store }: Context, { query, matches, place }: Selected): ListResult {
  if (!place) return store.list(query)
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
