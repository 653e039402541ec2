// One WatchEvent, and so one serialisation, for all who watch. watch.ts makes its events here.

import { openNewest } from '../api/fifo-cache.ts'
import type { Kind } from '../api/kind.ts'
import { type WatchEvent, watchEvent } from '../api/resources.ts'
import type { Entry, StoreEvent } from '../storage/store.ts'
import type { Context } from './context.ts'
import { isPlain, present } from './object-codec.ts'
import { presentAmong } from './undecryptable.ts'

/** Of the newest events alone: who falls behind has theirs made again, and nobody pays for ten minutes of lines. */
const made = openNewest<StoreEvent, WatchEvent[]>(8 * 1024 * 1024, ({ entry }) => entry.text.length)

/** Kinds with secrets are opened for each and not kept. */
export function eventOf(
  ctx: Context,
  kind: Kind,
  event: StoreEvent,
  type: WatchEvent['type'],
  entry: Entry,
): WatchEvent {
  if (!isPlain(kind)) return watchEvent(type, presentAmong(ctx, kind, entry))
  const all = made.get(event) ?? begin(event)
  // Nearly all events are the same to everybody who sees them.
  for (const one of all) if (one.type === type) return one
  const one = watchEvent(type, present(ctx, kind, entry))
  all.push(one)
  return one
}

function begin(event: StoreEvent): WatchEvent[] {
  const all: WatchEvent[] = []
  made.add(event, all)
  return all
}
