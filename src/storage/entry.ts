// Builds stored entries: inserts the revision into the text, and computes the sort key.

import { Buffer } from 'node:buffer'
import type { Entry, Key, Labels, Value } from './store.ts'

/** An entry as it is kept: it remembers where its revision stands, so that a deletion can put its own there. */
export type CachedEntry = Entry & { readonly gap: number }

const QUOTE = 0x22
const OUTSIDE_ASCII = /[^\0-\x7f]/

/** The key's place in byte order, as a string that JavaScript compares the same way: beyond ASCII, a character per byte. */
export function sortKey(namespace: string, name: string): string {
  const text = `${namespace}/${name}`
  return OUTSIDE_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text
}

/** Throws for a value whose gap is not between two quotes: it would become broken JSON with every revision. */
export function checkValue(value: Value): void {
  const { text, gap } = value
  if (text[gap - 1] !== QUOTE || text[gap] !== QUOTE) throw new TypeError(`the gap ${gap} is not between two quotes`)
}

/** `skip`: how many bytes after the gap are left out, the digits of an older revision. */
function fill(value: Value, revision: number, skip = 0): Buffer {
  const digits = String(revision)
  const { text, gap } = value
  // Exactly as long as needed and outside Node's shared pool, which a single small survivor would keep whole.
  const filled = Buffer.allocUnsafeSlow(text.length - skip + digits.length)
  text.copy(filled, 0, 0, gap)
  filled.write(digits, gap, 'latin1')
  text.copy(filled, gap + digits.length, gap + skip)
  return filled
}

export function cachedEntry(key: Key, revision: number, value: Value, labels: Labels): CachedEntry {
  return { key, revision, text: fill(value, revision), labels, gap: value.gap }
}

/** The last state with the revision of its deletion in place. */
export function withRevision(entry: CachedEntry, revision: number): CachedEntry {
  const text = fill(entry, revision, String(entry.revision).length)
  return { key: entry.key, revision, text, labels: entry.labels, gap: entry.gap }
}

/** Another text in the place of an entry's own, for everyone who holds the entry: cache, history and overlays share it. */
export function putText(entry: CachedEntry, { text, gap }: Pick<CachedEntry, 'text' | 'gap'>): void {
  Object.assign(entry, { text, gap })
}
