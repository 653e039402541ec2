// Maps terms, such as labels, to keys. The cache has one index for labels and one for the terms of its caller.

import { addKey, removeKey, type SortedKeys, sortedKeys } from './sorted-keys.ts'

/** A term with one key holds the key itself, so that 100,000 objects of 100,000 owners do not need 100,000 sets. */
export type TermIndex = Map<string, string | SortedKeys>

/** Moves a key from its previous terms to its new ones. */
export function reindex(index: TermIndex, key: string, previous: readonly string[], next: readonly string[]): void {
  if (previous === next || isSame(previous, next)) return
  // A new object, as every object at start.
  if (previous.length === 0) {
    for (const term of next) addTerm(index, term, key)
    return
  }
  const [before, after] = [new Set(previous), new Set(next)]
  for (const term of before) if (!after.has(term)) removeTerm(index, term, key)
  for (const term of after) if (!before.has(term)) addTerm(index, term, key)
}

const isSame = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && one.every((term, at) => term === other[at])

/** A term that has the key already stays as it is. */
export function addTerm(index: TermIndex, term: string, key: string): void {
  const there = index.get(term)
  if (there === undefined) index.set(term, key)
  else if (typeof there !== 'string') addKey(there, key)
  else if (there !== key) {
    const keys = sortedKeys()
    addKey(keys, there)
    addKey(keys, key)
    index.set(term, keys)
  }
}

function removeTerm(index: TermIndex, term: string, key: string): void {
  const there = index.get(term)
  if (there === undefined) return
  if (typeof there === 'string') {
    if (there === key) index.delete(term)
    return
  }
  removeKey(there, key)
  if (there.size === 0) index.delete(term)
}

export function keysOf(index: TermIndex, term: string): SortedKeys | undefined {
  const there = index.get(term)
  return typeof there === 'string' ? { chunks: [[there]], size: 1 } : there
}
