// Indexes stored objects by who can see them, so that filtered lists and watches evaluate few of them (D27).

import { nameTerm, userTerm } from '../api/candidates.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { parseStored } from '../api/parse-cache.ts'
import type { Store } from '../storage/store.ts'

export type VisibilityIndex = {
  /** Builds the index slowly, so that requests are hardly delayed. */
  start(): void
  /** Resolves once the index is complete, and builds it without delay; undefined if it is complete. */
  ready(): Promise<void> | undefined
}

const pauseMs = 50

export function openVisibilityIndex(store: Store, kinds: readonly Kind[]): VisibilityIndex {
  let built: Promise<void> | undefined
  let isAwaited = false
  let isComplete = false
  const pause = () =>
    new Promise<void>(resolve => {
      if (isAwaited) setImmediate(resolve)
      else setTimeout(resolve, pauseMs).unref()
    })
  const build = async () => {
    for (const kind of kinds)
      if (isIndexed(kind))
        await store.index(kind.id, ({ key, text }) => termsOf(kind, key.name, () => parseStored(text)), pause)
    isComplete = true
  }
  return {
    start: () => {
      built ??= build()
    },
    ready: () => {
      if (isComplete) return undefined
      isAwaited = true
      built ??= build()
      return built
    },
  }
}

/** The terms of an object; undefined if its kind is not indexed. */
export const indexTerms = (kind: Kind, object: Resource): readonly string[] | undefined =>
  isIndexed(kind) ? termsOf(kind, object.metadata.name ?? '', () => object) : undefined

const isIndexed = (kind: Kind) => kind.stored && (kind.readers !== undefined || kind.namespaced)

function termsOf(kind: Kind, name: string, object: () => Resource): readonly string[] {
  const terms = kind.namespaced ? [nameTerm(name)] : []
  if (!kind.readers) return terms
  try {
    return [...terms, ...kind.readers(object())]
  } catch {
    // An unreadable object is a candidate for every user. The filter decides.
    return [...terms, userTerm('*')]
  }
}
