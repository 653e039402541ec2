// Indexes stored objects by who can see them, so that filtered lists and watches evaluate few of them (D27).

import { nameTerm, userTerm } from '../api/candidates.ts'
import type { Kind } from '../api/kind.ts'
import { parseStored } from '../api/parse-cache.ts'
import type { Entry, Store } from '../storage/store.ts'

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
      if (kind.stored && (kind.readers || kind.namespaced))
        await store.index(kind.id, entry => termsOf(kind, entry), pause)
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

function termsOf(kind: Kind, { key, text }: Entry): readonly string[] {
  const terms = kind.namespaced ? [nameTerm(key.name)] : []
  if (!kind.readers) return terms
  try {
    return [...terms, ...kind.readers(parseStored(text))]
  } catch {
    // An unreadable object is a candidate for every user. The filter decides.
    return [...terms, userTerm('*')]
  }
}
