// Shares one WatchEvent, and its serialization, between all watches.

import { openFifoCache } from '../api/fifo-cache.ts'
import type { Kind } from '../api/kind.ts'
import { type WatchEvent, watchEvent } from '../api/resources.ts'
import type { Entry } from '../storage/store.ts'
import type { Context } from './context.ts'
import { isPlain, present } from './object-codec.ts'
import { presentAmong } from './undecryptable.ts'

/**
 * Caches only the newest events. A slow watch creates its events again, so memory stays bounded. The keys are
 * entries, because a store event also has the previous entry, which may be much larger.
 */
const cache = openFifoCache<Entry, WatchEvent[]>(8 * 1024 * 1024, ({ text }) => text.length)

/** `entry`: the entry of a store event. No other event has it. Events of kinds with secrets are decrypted for each watch and not cached. */
export function eventOf(ctx: Context, kind: Kind, entry: Entry, type: WatchEvent['type']): WatchEvent {
  if (!isPlain(kind)) return watchEvent(type, presentAmong(ctx, kind, entry))
  const all = cache.get(entry) ?? begin(entry)
  // Nearly all events have the same type for every watch.
  for (const one of all) if (one.type === type) return one
  const one = watchEvent(type, present(ctx, kind, entry))
  all.push(one)
  return one
}

function begin(entry: Entry): WatchEvent[] {
  const all: WatchEvent[] = []
  cache.add(entry, all)
  return all
}
