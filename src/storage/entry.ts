// Builds stored entries: inserts the revision into the text, and computes the sort key.

import { Buffer } from 'node:buffer'
import { ownText } from '../api/own-text.ts'
import type { Entry, Key, Labels, Value } from './store.ts'

/** A cached entry. It stores the position of its revision, so that a deletion can insert its own. */
export type CachedEntry = Entry & Pick<Value, 'gap'> & { readonly terms: readonly string[] | undefined }

const QUOTE = 0x22
const OUTSIDE_ASCII = /[^\0-\x7f]/

/** The key in byte order, as a string that JavaScript compares the same way: one character per byte if it is not ASCII. */
export function sortKey(namespace: string, name: string): string {
  const text = `${namespace}/${name}`
  return OUTSIDE_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text
}

/** Throws if the gap of a value is not between two quotes: every revision would make it invalid JSON. */
export function checkValue(value: Value): void {
  const { text, gap } = value
  if (text[gap - 1] !== QUOTE || text[gap] !== QUOTE) throw new TypeError(`the gap ${gap} is not between two quotes`)
}

/** `skip`: number of bytes to omit after the gap, the digits of an older revision. */
function fill(value: Value, revision: number, skip = 0): Buffer {
  const digits = String(revision)
  const { text, gap } = value
  // Has the exact size and is outside Node's shared pool, because one small surviving buffer would keep the whole pool in memory.
  const filled = Buffer.allocUnsafeSlow(text.length - skip + digits.length)
  text.copy(filled, 0, 0, gap)
  filled.write(digits, gap, 'latin1')
  text.copy(filled, gap + digits.length, gap + skip)
  return filled
}

export function cachedEntry(key: Key, revision: number, value: Value, labels: Labels): CachedEntry {
  const terms = value.index?.terms?.map(ownText)
  return { key, revision, text: fill(value, revision), labels, gap: value.gap, terms }
}

/** The last state, with the revision of its deletion. */
export function withRevision(entry: CachedEntry, revision: number): CachedEntry {
  const text = fill(entry, revision, String(entry.revision).length)
  return { key: entry.key, revision, text, labels: entry.labels, gap: entry.gap, terms: entry.terms }
}

/** Replaces the text of an entry. Cache, history and snapshots share the entry, so all of them see it. */
export function putText(entry: CachedEntry, { text, gap }: Pick<CachedEntry, 'text' | 'gap'>): void {
  Object.assign(entry, { text, gap })
}
