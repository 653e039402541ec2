// Caches lists of the newest revision, because after a restart all clients request the same pages.

import type { Kind } from '../api/kind.ts'
import type { List, ListOptions } from '../api/resources.ts'
import type { Store } from '../storage/store.ts'
import type { Context } from './context.ts'
import { isPlain } from './object-codec.ts'

type Recent = { revision: number; readonly lists: Map<string, List> }
const recent = new WeakMap<Store, Recent>()
const maxLists = 16
const maxBytes = 1024 * 1024

/**
 * The cache key of a list. Lists that depend on the caller have none. Neither have encrypted kinds, because re-encryption replaces
 * their bytes without a new revision. The server itself also sees hidden fields, so it has its own lists.
 */
export function slotOf(ctx: Context, kind: Kind, options: ListOptions): string | undefined {
  const { namespace = '', labelSelector = '', fieldSelector = '', limit = 0, continue: token = '' } = options
  const isCacheable = ctx.isInternal ? kind.sealed.length === 0 : isPlain(kind)
  if (!isCacheable || options.only || !limit) return undefined
  if (options.resourceVersion || options.resourceVersionMatch) return undefined
  return JSON.stringify([ctx.isInternal, kind.id, namespace, labelSelector, fieldSelector, limit, token])
}

export function recentList(store: Store, slot: string): List | undefined {
  return listsOf(store).get(slot)
}

/** Returns the list. Caches it unless it is large or of an older revision. */
export function keepList(store: Store, slot: string, list: List): List {
  const lists = listsOf(store)
  if (list.resourceVersion !== String(store.revision) || bytesOf(list) > maxBytes) return list
  if (lists.size >= maxLists) lists.clear()
  lists.set(slot, list)
  return list
}

function listsOf(store: Store): Map<string, List> {
  const kept = recent.get(store) ?? { revision: 0, lists: new Map() }
  recent.set(store, kept)
  if (kept.revision !== store.revision) kept.lists.clear()
  kept.revision = store.revision
  return kept.lists
}

function bytesOf({ items }: List): number {
  let bytes = 0
  for (const { json } of items) bytes += json.length
  return bytes
}
