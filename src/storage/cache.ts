// Every object in memory, in key order and by label: what get, list and count answer from. Fed by the replica with an engine's events.

import { type Held, sortKey } from './entry.ts'
import { termsOf } from './labels.ts'
import type { Overlay } from './overlay.ts'
import {
  addKey,
  nextKey,
  nextOfAll,
  rankOf,
  removeKey,
  type SortedKeys,
  sortedKeys,
  type Walk,
  walkFrom,
} from './sorted-keys.ts'
import type { Entry, Key, Labels, ListQuery } from './store.ts'

/** `index`: for every label `key=value`, the keys that carry it. */
type Bucket = {
  readonly entries: Map<string, Held>
  readonly keys: SortedKeys
  readonly index: Map<string, SortedKeys>
}
type Terms = NonNullable<ListQuery['labels']>
type Page = { readonly entries: readonly Entry[]; readonly more: boolean; readonly remaining: number }

export type Cache = {
  get(key: Key): Held | undefined
  count(bucket: string): number
  put(entry: Held): void
  remove(key: Key): void
  /** `overlay`: the changes since the revision that the page is to show; absent = the newest state. */
  page(query: ListQuery, overlay?: Overlay): Page
}

export function openCache(): Cache {
  const buckets = new Map<string, Bucket>()

  return {
    get: key => buckets.get(key.bucket)?.entries.get(sortKey(key.namespace, key.name)),
    count: bucket => buckets.get(bucket)?.entries.size ?? 0,
    put(entry) {
      const bucket = buckets.get(entry.key.bucket) ?? emptyBucket()
      buckets.set(entry.key.bucket, bucket)
      const key = sortKey(entry.key.namespace, entry.key.name)
      const previous = bucket.entries.get(key)
      if (previous === undefined) addKey(bucket.keys, key)
      bucket.entries.set(key, entry)
      reindex(bucket, key, previous?.labels, entry.labels)
    },
    remove({ bucket: name, namespace, name: object }) {
      const bucket = buckets.get(name)
      const key = sortKey(namespace, object)
      const previous = bucket?.entries.get(key)
      if (bucket === undefined || previous === undefined) return
      bucket.entries.delete(key)
      removeKey(bucket.keys, key)
      reindex(bucket, key, previous.labels, undefined)
    },
    page: (query, overlay) => pageOf(buckets.get(query.bucket) ?? emptyBucket(), query, overlay),
  }
}

function emptyBucket(): Bucket {
  return { entries: new Map(), keys: sortedKeys(), index: new Map() }
}

function reindex(bucket: Bucket, key: string, previous: Labels, next: Labels): void {
  if (previous === next) return
  const [before, after] = [new Set(termsOf(previous)), new Set(termsOf(next))]
  for (const term of before) {
    const keys = after.has(term) ? undefined : bucket.index.get(term)
    if (keys === undefined) continue
    removeKey(keys, key)
    if (keys.size === 0) bucket.index.delete(term)
  }
  for (const term of after) {
    if (before.has(term)) continue
    const keys = bucket.index.get(term) ?? sortedKeys()
    if (keys.size === 0) bucket.index.set(term, keys)
    addKey(keys, key)
  }
}

function pageOf(bucket: Bucket, query: ListQuery, overlay: Overlay | undefined): Page {
  const { start, end } = rangeOf(query)
  const { labels: terms, filter, limit = 0 } = query
  const walks = (terms === undefined ? [bucket.keys] : candidates(bucket, terms)).map(keys => walkFrom(keys, start))
  if (overlay !== undefined) walks.push(walkFrom(overlay.keys, start))
  const entries: Entry[] = []
  let last = start
  for (let key = nextOfAll(walks); key !== undefined && (end === undefined || key < end); key = nextOfAll(walks)) {
    const entry = overlay?.before.has(key) ? overlay.before.get(key) : bucket.entries.get(key)
    if (entry === undefined || (terms !== undefined && !holds(terms, entry.labels))) continue
    if (limit > 0 && entries.length === limit) {
      return { entries, more: true, remaining: remainingAfter(bucket, overlay, last, end) }
    }
    if (filter !== undefined && !filter(entry)) continue
    entries.push(entry)
    last = key
  }
  return { entries, more: false, remaining: 0 }
}

/** From `start` on and below `end`, in sort keys. '0' is the character after '/'. */
function rangeOf(query: ListQuery): { start: string; end: string | undefined } {
  const { namespace = '', after } = query
  const first = namespace === '' ? '' : sortKey(namespace, '')
  const end = namespace === '' ? undefined : `${first.slice(0, -1)}0`
  const next = after === undefined ? '' : justAfter(sortKey(after.namespace, after.name))
  return { start: next > first ? next : first, end }
}

function justAfter(key: string): string {
  return `${key}\0`
}

/** The keys that the term with the fewest of them allows; the other terms are looked at entry by entry. */
function candidates(bucket: Bucket, terms: Terms): SortedKeys[] {
  if (terms.length === 0) return [bucket.keys]
  let fewest = Number.POSITIVE_INFINITY
  let best: SortedKeys[] = []
  for (const { key, values } of terms) {
    const found = [...new Set(values)].flatMap(value => bucket.index.get(`${key}=${value}`) ?? [])
    const size = found.reduce((sum, keys) => sum + keys.size, 0)
    if (size >= fewest) continue
    fewest = size
    best = found
  }
  return best
}

function holds(terms: Terms, labels: Labels): boolean {
  return terms.every(({ key, values }) => {
    const value = labels?.[key]
    return value !== undefined && values.includes(value)
  })
}

function remainingAfter(bucket: Bucket, overlay: Overlay | undefined, last: string, end: string | undefined): number {
  const from = justAfter(last)
  const below = end === undefined ? bucket.keys.size : rankOf(bucket.keys, end)
  let remaining = below - rankOf(bucket.keys, from)
  if (overlay === undefined) return remaining
  const walk: Walk = walkFrom(overlay.keys, from)
  for (let key = nextKey(walk); key !== undefined && (end === undefined || key < end); key = nextKey(walk)) {
    if (overlay.before.get(key) !== undefined) remaining++
    if (bucket.entries.has(key)) remaining--
  }
  return remaining
}
