// Tracks the objects that a watch may show: a fixed selection, or one that follows the caller's permissions (D27, D71).

import type { Kind } from '../api/kind.ts'
import type { Entry, StoreEvent } from '../storage/store.ts'
import type { Context } from './context.ts'
import type { EntryAccess, Selected } from './selection.ts'

/** Whether an object is visible after an event, and was before it. */
type Move = { readonly isIn: boolean; readonly wasIn: boolean }

export interface View {
  moved(event: StoreEvent): Move
  /** Whether the caller may see this state of an object now. */
  allows(entry: Entry): boolean
  /** Called for a visible object that the watch did not send. A later loss of access is not an event for the client. */
  skip(entry: Entry): void
  /** Objects that became visible or invisible since the last call, without an event of their own. */
  changes(): readonly { readonly entry: Entry; readonly isIn: boolean }[]
  /** Calls back when there may be changes. */
  wait(wake: () => void): void
  close(): void
}

export function fixedView({ matches }: Selected): View {
  return {
    moved: event => ({
      isIn: event.type !== 'deleted' && (!matches || matches(event.entry)),
      wasIn: event.previous !== undefined && (!matches || matches(event.previous)),
    }),
    allows: () => true,
    skip: () => {},
    changes: () => [],
    wait: () => {},
    close: () => {},
  }
}

const slotOf = ({ key }: Entry) => `${key.namespace}/${key.name}`

/**
 * The objects that were visible to a caller who resumes a watch at a revision. undefined: the caller has lost access to
 * some of them since. No event may show these objects, not even as DELETED, so the watch cannot resume (D71).
 */
export function viewedAt(
  { store }: Context,
  { query, among }: Selected,
  { matched, stillAllowed }: EntryAccess,
  revision: number,
): readonly Entry[] | undefined {
  const { entries } = store.list({ ...query, ...among(), filter: matched, revision })
  return entries.every(stillAllowed) ? entries : undefined
}

/**
 * Tracks visible objects, because permissions can change while an object does not. `viewed`: the objects at the start.
 */
export function movingView(
  ctx: Context,
  kind: Kind,
  selected: Selected,
  viewed: readonly Entry[],
  refilter: (again: () => void) => () => void = () => () => {},
): View {
  const { filter: _, ...whole } = selected.query
  const shown = new Map(viewed.map(entry => [slotOf(entry), entry.key]))
  let stale = false
  let wake: () => void = () => {}
  const stop = refilter(() => {
    stale = true
    wake()
  })
  const track = (entry: Entry, isIn: boolean): boolean => {
    const slot = slotOf(entry)
    const wasIn = shown.has(slot)
    if (isIn) shown.set(slot, entry.key)
    else shown.delete(slot)
    return wasIn
  }
  const sees = (entry: Entry) => selected.matches?.(entry) ?? true
  return {
    moved: event => {
      const isIn = event.type !== 'deleted' && sees(event.entry)
      return { isIn, wasIn: track(event.entry, isIn) }
    },
    allows: sees,
    skip: entry => void shown.delete(slotOf(entry)),
    changes: () => {
      if (!stale) return []
      stale = false
      const { among } = selected.among()
      // Include visible objects: after a loss of access they are no longer candidates.
      const changed = among && { among: { ...among, refs: [...among.refs, ...shown.values()] } }
      return ctx.store
        .list({ ...whole, bucket: kind.id, ...changed })
        .entries.map(entry => ({ entry, isIn: sees(entry) }))
        .filter(({ entry, isIn }) => track(entry, isIn) !== isIn)
    },
    wait: callback => {
      wake = callback
      if (stale) callback()
    },
    close: stop,
  }
}
