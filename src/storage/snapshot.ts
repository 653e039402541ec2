// A bucket as it was at an older revision: what has changed since, laid over the newest state. The cache lists through it.

import { sortKey } from './entry.ts'
import type { EventLog } from './event-log.ts'
import { addKey, type SortedKeys, sortedKeys } from './sorted-keys.ts'
import type { Entry } from './store.ts'

/** For every key that changed after the revision, what was there then (undefined: nothing). */
export type Overlay = { readonly before: ReadonlyMap<string, Entry | undefined>; readonly keys: SortedKeys }

type Kept = {
  readonly revision: number
  readonly before: Map<string, Entry | undefined>
  readonly keys: SortedKeys
  position: number
}

const MOST_KEPT = 16

/** Overlays are kept and continued: the pages of one long list would otherwise each read all history since its start. */
export function openOverlays(log: EventLog): (bucket: string, revision: number) => Overlay {
  const kept = new Map<string, Kept>()

  return (bucket, revision) => {
    const id = `${revision} ${bucket}`
    const overlay = kept.get(id) ?? {
      revision,
      before: new Map<string, Entry | undefined>(),
      keys: sortedKeys(),
      position: log.positionAfter(bucket, revision),
    }
    const events = log.eventsFrom(bucket, overlay.position)
    for (const event of events) {
      const key = sortKey(event.key.namespace, event.key.name)
      if (overlay.before.has(key)) continue
      overlay.before.set(key, event.previous)
      addKey(overlay.keys, key)
    }
    overlay.position += events.length
    // Inserted again, so that the map's order is the order of last use.
    kept.delete(id)
    kept.set(id, overlay)
    forget(kept, log.floor)
    return overlay
  }
}

function forget(kept: Map<string, Kept>, floor: number): void {
  for (const [id, overlay] of kept) if (overlay.revision < floor || kept.size > MOST_KEPT) kept.delete(id)
}
