// One WatchEvent, and so one serialisation, for all who watch. watch.ts makes its events here.

import type { Kind } from '../api/kind.ts'
import { type WatchEvent, watchEvent } from '../api/resources.ts'
import type { Entry, StoreEvent } from '../storage/store.ts'
import { presentAmong } from './broken-seal.ts'
import type { Context } from './context.ts'
import { isPlain, present } from './redact.ts'

/** Of the newest events alone: who falls behind has theirs made again, and nobody pays for ten minutes of lines. */
const made = new Map<StoreEvent, Map<string, WatchEvent>>()
const mostBytes = 8 * 1024 * 1024
let bytes = 0

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
  const one = all.get(type) ?? watchEvent(type, present(ctx, kind, entry))
  all.set(type, one)
  return one
}

function begin(event: StoreEvent): Map<string, WatchEvent> {
  const all = new Map<string, WatchEvent>()
  made.set(event, all)
  bytes += event.entry.text.length
  for (const oldest of made.keys()) {
    if (bytes <= mostBytes || oldest === event) break
    made.delete(oldest)
    bytes -= oldest.entry.text.length
  }
  return all
}
