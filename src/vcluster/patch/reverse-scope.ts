// Decides which matches a reverse patch gets: labels and annotations that the host changed, and the maps around them.

import type { ConcretePath } from './path.ts'
import { isMetadataMap } from './protected-paths.ts'

/** Keys that the host changed since the last sync. */
export type HostChanges = { readonly labels: ReadonlySet<string>; readonly annotations: ReadonlySet<string> }

export const notSyncedBackReason = 'only labels and annotations are synced back'
const unchangedReason = 'the host did not change it'

/**
 * Returns why a match is not reversed. An unchanged key already has its virtual value, and reversing it again would damage it.
 * Without `changes`, every key counts as changed.
 */
export function notReversed([first, part, key, ...inside]: ConcretePath, changes?: HostChanges): string | undefined {
  if (first === undefined || (first === 'metadata' && part === undefined)) return undefined
  if (first !== 'metadata' || !isMetadataMap(part) || inside.length) return notSyncedBackReason
  if (!changes) return undefined
  const isChanged = key === undefined ? changes[part].size > 0 : changes[part].has(String(key))
  return isChanged ? undefined : unchangedReason
}
