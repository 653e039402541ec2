// All objects in memory, in key order and by label. Serves get, list and count. The watch cache updates it with the events of the engine.

import { type CachedEntry, sortKey } from './entry.ts'
import { termsOf as labelTerms } from './labels.ts'
import type { Snapshot } from './snapshot.ts'
import {
  addKey,
  nextKey,
  rankOf,
  removeKey,
  type SortedKeys,
  sortedKeys,
  unionOf,
  type Walk,
  walkFrom,
} from './sorted-keys.ts'
import type { Entry, Key, Labels, ListQuery, Store, TermsOf } from './store.ts'
import { addTerm, keysOf, reindex, type TermIndex } from './term-index.ts'

/** `labels`: for every label `key=value`, the keys with that label. `terms`: the same for the terms of `termsOf`. */
type Bucket = {
  readonly entries: Map<string, CachedEntry>
  readonly keys: SortedKeys
  readonly labels: TermIndex
  readonly terms: TermIndex
  termsOf: TermsOf | undefined
  /** Whether `terms` has every key. Until then a list reads all entries. */
  isIndexed: boolean
}
type Terms = NonNullable<ListQuery['labels']>
type Page = { readonly entries: readonly Entry[]; readonly more: boolean; readonly remaining: number }

export type Cache = {
  get(key: Key): CachedEntry | undefined
  count(bucket: string): number
  put(entry: CachedEntry): void
  remove(key: Key): void
  all(): Iterable<CachedEntry>
  readonly index: Store['index']
  /** `snapshot`: the changes since the revision of the page; absent: the newest state. */
  page(query: ListQuery, snapshot?: Snapshot): Page
}

export function openCache(): Cache {
  const buckets = new Map<string, Bucket>()
  const bucketOf = (name: string): Bucket => {
    const bucket = buckets.get(name) ?? emptyBucket()
    buckets.set(name, bucket)
    return bucket
  }

  return {
    get: key => buckets.get(key.bucket)?.entries.get(sortKey(key.namespace, key.name)),
    count: bucket => buckets.get(bucket)?.entries.size ?? 0,
    put(entry) {
      const bucket = bucketOf(entry.key.bucket)
      const key = sortKey(entry.key.namespace, entry.key.name)
      const previous = bucket.entries.get(key)
      if (previous === undefined) addKey(bucket.keys, key)
      bucket.entries.set(key, entry)
      change(bucket, key, previous, entry)
    },
    remove({ bucket: name, namespace, name: object }) {
      const bucket = buckets.get(name)
      const key = sortKey(namespace, object)
      const previous = bucket?.entries.get(key)
      if (bucket === undefined || previous === undefined) return
      bucket.entries.delete(key)
      removeKey(bucket.keys, key)
      change(bucket, key, previous)
    },
    *all() {
      for (const { entries } of buckets.values()) yield* entries.values()
    },
    index: (name, termsOf, pause) => buildIndex(bucketOf(name), termsOf, pause),
    page: (query, snapshot) => pageOf(buckets.get(query.bucket) ?? emptyBucket(), query, snapshot),
  }
}

function emptyBucket(): Bucket {
  return {
    entries: new Map(),
    keys: sortedKeys(),
    labels: new Map(),
    terms: new Map(),
    termsOf: undefined,
    isIndexed: false,
  }
}

function change(bucket: Bucket, key: string, previous?: CachedEntry, next?: CachedEntry): void {
  const { labels, terms, termsOf } = bucket
  if (previous?.labels !== next?.labels) reindex(labels, key, labelTerms(previous?.labels), labelTerms(next?.labels))
  if (termsOf) reindex(terms, key, termsFor(termsOf, previous), termsFor(termsOf, next))
}

const termsFor = (termsOf: TermsOf, entry: CachedEntry | undefined) =>
  entry === undefined ? [] : (entry.terms ?? termsOf(entry))

/** A slice of the index ends after this many entries or bytes, about a millisecond of work. */
const sliceEntries = 128
const sliceBytes = 128 * 1024

/** Works in slices, so that requests run in between. Concurrent changes index their own keys (`change`). */
async function buildIndex(bucket: Bucket, termsOf: TermsOf, pause: () => Promise<void>): Promise<void> {
  bucket.termsOf = termsOf
  for (let start: string | undefined = ''; start !== undefined; ) {
    const walk = walkFrom(bucket.keys, start)
    let key = nextKey(walk)
    for (let entries = 0, bytes = 0; key !== undefined && entries < sliceEntries && bytes < sliceBytes; entries++) {
      const entry = bucket.entries.get(key)!
      for (const term of termsFor(termsOf, entry)) addTerm(bucket.terms, term, key)
      bytes += entry.text.length
      key = nextKey(walk)
    }
    start = key
    if (start !== undefined) await pause()
  }
  bucket.isIndexed = true
}

function pageOf(bucket: Bucket, query: ListQuery, snapshot: Snapshot | undefined): Page {
  const range = rangeOf(query)
  const { labels: terms, filter, limit = 0 } = query
  const walks = walksOf(bucket, query, range)
  if (snapshot !== undefined) walks.push(walkFrom(snapshot.keys, range.start, range.end))
  const next = unionOf(walks)
  const entries: Entry[] = []
  let last = range.start
  for (let key = next(); key !== undefined; key = next()) {
    const entry = snapshot?.before.has(key) ? snapshot.before.get(key) : bucket.entries.get(key)
    if (entry === undefined || (terms !== undefined && !holds(terms, entry.labels))) continue
    if (limit > 0 && entries.length === limit) {
      return { entries, more: true, remaining: remainingAfter(bucket, snapshot, last, range.end) }
    }
    if (filter !== undefined && !filter(entry)) continue
    entries.push(entry)
    last = key
  }
  return { entries, more: false, remaining: 0 }
}

/** The keys to check: by labels or by candidates, whichever are fewer. */
function walksOf(bucket: Bucket, { labels, among }: ListQuery, range: Range): Walk[] {
  const walkAll = (sets: readonly SortedKeys[]) => sets.map(keys => walkFrom(keys, range.start, range.end))
  const labelled = labels && withLabels(bucket, labels)
  if (among === undefined || (among.terms.length > 0 && !bucket.isIndexed)) return walkAll(labelled ?? [bucket.keys])
  const sets = among.terms.flatMap(term => keysOf(bucket.terms, term) ?? [])
  if (among.refs.length) sets.push(setOf(among.refs.map(({ namespace, name }) => sortKey(namespace, name))))
  const spaces = among.namespaces.map(namespace => narrowed(namespaceRange(namespace), range))
  if (labelled && sumOf(labelled) < sumOf(sets) + sizeOf(bucket.keys, spaces)) return walkAll(labelled)
  return [...walkAll(sets), ...spaces.map(({ start, end }) => walkFrom(bucket.keys, start, end))]
}

const sumOf = (sets: readonly SortedKeys[]) => sets.reduce((sum, keys) => sum + keys.size, 0)

function setOf(keys: readonly string[]): SortedKeys {
  const once = [...new Set(keys)].sort()
  return { chunks: [once], size: once.length }
}

/** From `start`, and below `end`, in sort keys. */
type Range = { readonly start: string; readonly end: string | undefined }

function rangeOf({ namespace = '', after }: ListQuery): Range {
  const { start, end } = namespace === '' ? { start: '', end: undefined } : namespaceRange(namespace)
  const next = after === undefined ? '' : justAfter(sortKey(after.namespace, after.name))
  return { start: next > start ? next : start, end }
}

/** '0' is the character after '/'. */
function namespaceRange(namespace: string): { readonly start: string; readonly end: string } {
  const start = sortKey(namespace, '')
  return { start, end: `${start.slice(0, -1)}0` }
}

function narrowed(range: { readonly start: string; readonly end: string }, { start, end }: Range) {
  return {
    start: range.start > start ? range.start : start,
    end: end === undefined || range.end < end ? range.end : end,
  }
}

const sizeOf = (keys: SortedKeys, spaces: readonly { readonly start: string; readonly end: string }[]) =>
  spaces.reduce((sum, { start, end }) => sum + Math.max(0, rankOf(keys, end) - rankOf(keys, start)), 0)

function justAfter(key: string): string {
  return `${key}\0`
}

/** The keys of the most selective term. The other terms are checked entry by entry. */
function withLabels(bucket: Bucket, terms: Terms): SortedKeys[] {
  if (terms.length === 0) return [bucket.keys]
  let fewest = Number.POSITIVE_INFINITY
  let best: SortedKeys[] = []
  for (const { key, values } of terms) {
    const found = [...new Set(values)].flatMap(value => keysOf(bucket.labels, `${key}=${value}`) ?? [])
    const size = sumOf(found)
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

function remainingAfter(bucket: Bucket, snapshot: Snapshot | undefined, last: string, end: string | undefined): number {
  const from = justAfter(last)
  const below = end === undefined ? bucket.keys.size : rankOf(bucket.keys, end)
  let remaining = below - rankOf(bucket.keys, from)
  if (snapshot === undefined) return remaining
  const walk = walkFrom(snapshot.keys, from, end)
  for (let key = nextKey(walk); key !== undefined; key = nextKey(walk)) {
    if (snapshot.before.get(key) !== undefined) remaining++
    if (bucket.entries.has(key)) remaining--
  }
  return remaining
}
