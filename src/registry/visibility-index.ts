// Indexes stored objects by who can see them, so that filtered lists and watches evaluate few of them (D27).

import { nameTerm, userTerm } from '../api/candidates.ts'
import type { Kind } from '../api/kind.ts'
import { parseStored } from '../api/parsed.ts'
import type { Entry, Store } from '../storage/store.ts'

/** Built when first asked for; resolves once every list by candidates is answered from the index. */
export function openVisibilityIndex(store: Store, kinds: readonly Kind[]): () => Promise<void> {
  let built: Promise<void> | undefined
  return () => {
    built ??= build(store, kinds)
    return built
  }
}

async function build(store: Store, kinds: readonly Kind[]): Promise<void> {
  // One after the other: requests that come meanwhile wait for one slice, not for one of each kind.
  for (const kind of kinds)
    if (kind.stored && (kind.readers || kind.namespaced)) await store.index(kind.id, entry => termsOf(kind, entry))
}

function termsOf(kind: Kind, { key, text }: Entry): readonly string[] {
  const terms = kind.namespaced ? [nameTerm(key.name)] : []
  if (!kind.readers) return terms
  try {
    return [...terms, ...kind.readers(parseStored(text))]
  } catch {
    // An object that cannot be read is a candidate for everybody: the filter decides, as about every other.
    return [...terms, userTerm('*')]
  }
}
