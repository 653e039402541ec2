// Watches a collection: the start revision, the selection, and the events (wire §1.12).

import { expired, fieldForbidden, invalidOptions } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import {
  type Document,
  documentOf,
  statusDocument,
  type Watch,
  type WatchEvent,
  type WatchOptions,
  watchEvent,
} from '../api/resources.ts'
import { type Cursor, type Entry, StoreError, type StoreEvent } from '../storage/store.ts'
import type { Context } from './context.ts'
import { checkMatch } from './list.ts'
import { parseVersion, waitForRevision } from './resource-version.ts'
import { select, stateOf } from './selection.ts'
import { presentAmong } from './undecryptable.ts'
import { eventOf } from './watch-event-cache.ts'
import { fixedView, type Move, movingView, type View, viewedAt } from './watch-filter.ts'

/** The maximum that one `next` returns. The last event may exceed the bytes. */
const maxEvents = 256
const maxBytes = 1024 * 1024

export async function watch(ctx: Context, kind: Kind, options: WatchOptions = {}): Promise<Watch> {
  const selected = select(ctx, kind, options)
  if (selected.access) await ctx.visibility.ready()
  const version = parseVersion(options.resourceVersion)
  checkInitial(options, version)
  const fromState = options.sendInitialEvents ?? (version === undefined || version === 0)
  // The initial state must not be older than the requested version.
  if (fromState && version !== undefined && version > ctx.store.revision) await waitForRevision(ctx.store, version)
  const state = fromState ? stateOf(ctx, selected) : undefined
  const start = state ? state.revision : version && version > 0 ? version : ctx.store.revision
  const backlog: Backlog = {
    changes: (state?.entries ?? []).map(entry => ({ entry, isIn: true })),
    end: options.sendInitialEvents && options.allowWatchBookmarks ? bookmarkAt(kind, start, true) : undefined,
  }
  try {
    // If the version is in the future, send nothing until then.
    const cursor = ctx.store.watch(kind.id, Math.min(start, ctx.store.revision))
    const begin = (view: View) => follow(ctx, kind, { cursor, view, from: start, requested: version ?? 0, backlog })
    if (!selected.access) return begin(fixedView(selected))
    const viewed = state?.entries ?? viewedAt(ctx, selected, selected.access, Math.min(start, ctx.store.revision))
    if (!viewed) return ended(tooOld(start, ctx.store.revision))
    return begin(movingView(ctx, kind, selected, viewed, options.refilter))
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return ended(tooOld(start, error.revision))
  }
}

function checkInitial(options: WatchOptions, version: number | undefined): void {
  if (options.sendInitialEvents === undefined) {
    if (options.resourceVersionMatch)
      throw invalidOptions('ListOptions', [
        fieldForbidden(
          'resourceVersionMatch',
          'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
        ),
      ])
    return
  }
  if (options.resourceVersionMatch !== 'NotOlderThan')
    throw invalidOptions('ListOptions', [
      fieldForbidden('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    ])
  if (version !== undefined) checkMatch(options.resourceVersionMatch, version)
}

const tooOld = (requested: number, oldest: number): WatchEvent =>
  watchEvent('ERROR', statusDocument(expired(`too old resource version: ${requested} (${oldest})`).status))

/**
 * Objects to send in their current state, then an optional bookmark. Kept as entries, so that their events are created
 * one by one.
 */
type Backlog = { readonly changes: readonly VisibilityChange[]; readonly end?: WatchEvent | undefined }
type VisibilityChange = { readonly entry: Entry; readonly isIn: boolean }

type Start = {
  readonly cursor: Cursor
  readonly view: View
  readonly from: number
  readonly requested: number
  readonly backlog: Backlog
}

function follow(ctx: Context, kind: Kind, { cursor, view, from, requested, backlog }: Start): Watch {
  let rest: Iterator<WatchEvent> | undefined = eventsOf(ctx, kind, backlog)
  let isInitial = true
  let stopped = false
  let wake: (() => void) | undefined
  const stop = () => {
    stopped = true
    cursor.close()
    view.close()
    wake?.()
  }
  /** The next events of the current state; empty at its end. */
  const takeRest = (): WatchEvent[] => {
    const events: WatchEvent[] = []
    for (let bytes = 0; rest && events.length < maxEvents && bytes < maxBytes; ) {
      const { value, done } = rest.next()
      if (done) {
        rest = undefined
        isInitial = false
      } else {
        events.push(value)
        bytes += value.document.json.length
      }
    }
    return events
  }
  /** The next events of the log; undefined at its end. */
  const take = (): WatchEvent[] | undefined => {
    const events: WatchEvent[] = []
    try {
      for (let looked = 0, bytes = 0; looked < maxEvents && bytes < maxBytes; looked++) {
        const [event] = cursor.take(1)
        if (!event) return looked ? events : undefined
        const seen = event.revision > from ? translate(ctx, kind, view.moved(event), event) : undefined
        if (!seen) continue
        events.push(seen)
        bytes += event.entry.text.length
      }
      return events
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      stop()
      return [...events, tooOld(cursor.revision, error.revision)]
    }
  }
  return {
    async next() {
      for (;;) {
        const first = rest && !stopped ? takeRest() : []
        if (first.length) return first
        const happened = stopped ? undefined : take()
        if (happened?.length) return happened
        if (stopped) return undefined
        if (happened) {
          await new Promise(setImmediate) // let others run while the watch skips many events
          continue
        }
        // Send all logged events before changes of visibility.
        const changes = view.changes()
        if (changes.length) {
          rest = eventsOf(ctx, kind, { changes })
          continue
        }
        await new Promise<void>(resolve => {
          wake = resolve
          view.wait(resolve)
          cursor.wait(resolve)
        })
      }
    },
    // A client that reconnects before the end of the initial state needs it from the start.
    bookmark: () => bookmarkAt(kind, isInitial && rest ? requested : cursor.revision, false),
    stop,
  }
}

function* eventsOf(ctx: Context, kind: Kind, { changes, end }: Backlog): Generator<WatchEvent> {
  // An object may become visible or invisible without a change of its own (D27).
  for (const { entry, isIn } of changes) yield watchEvent(isIn ? 'ADDED' : 'DELETED', presentAmong(ctx, kind, entry))
  if (end) yield end
}

function ended(last: WatchEvent): Watch {
  let rest: WatchEvent[] | undefined = [last]
  return {
    async next() {
      const events = rest
      rest = undefined
      return events
    },
    bookmark: () => last,
    stop: () => {
      rest = undefined
    },
  }
}

/** The event for this selection: entering is ADDED, leaving is DELETED with the last visible state. */
function translate(ctx: Context, kind: Kind, { isIn, wasIn }: Move, event: StoreEvent): WatchEvent | undefined {
  if (isIn) return eventOf(ctx, kind, event, wasIn ? 'MODIFIED' : 'ADDED', event.entry)
  if (!wasIn) return undefined
  return event.type === 'deleted' ? eventOf(ctx, kind, event, 'DELETED', event.entry) : left(ctx, kind, event)
}

function left(ctx: Context, kind: Kind, { previous, revision }: StoreEvent): WatchEvent {
  const { object } = presentAmong(ctx, kind, previous as Entry)
  return watchEvent(
    'DELETED',
    documentOf({ ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } }),
  )
}

function bookmarkAt(kind: Kind, revision: number, initialEnd: boolean): WatchEvent {
  const annotations = initialEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
  const document: Document = documentOf({
    kind: kind.kind,
    apiVersion: kind.apiVersion,
    metadata: { resourceVersion: String(revision), ...annotations },
  })
  return watchEvent('BOOKMARK', document)
}
