// Watches a collection: the start revision, the selection, and the events (wire §1.12).

import { expired, fieldForbidden, invalidOptions } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
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
import { watchSubresource } from './subresource.ts'
import { presentAmong } from './undecryptable.ts'
import { openPart } from './unencrypted-part.ts'
import { eventOf } from './watch-event-cache.ts'
import { fixedView, movingView, type View, viewedAt } from './watch-filter.ts'

/**
 * The maximum that one `next` returns, in one write to the client: a client that does not read must not receive more
 * after it lost access. One event may exceed the bytes.
 */
const maxEvents = 256
const maxBytes = 512 * 1024

export async function watch(ctx: Context, kind: Kind, options: WatchOptions = {}): Promise<Watch> {
  if (options.of) return watchSubresource(ctx, kind, options.of)
  const own = ctx.admissions.get(kind)?.watch
  if (own) return own(options, ctx.caller)
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
 * Objects to send, then an optional bookmark. Kept as entries, because each event is created when the client takes it:
 * a slow client may have lost access to the object by then.
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
  let rest: Backlog | undefined = backlog
  let position = 0
  /** The next event of the log, if it did not fit into the last `next`. The cursor is already past it. */
  let waiting: StoreEvent | undefined
  let isInitial = true
  let stopped = false
  let wake: (() => void) | undefined
  const stop = () => {
    stopped = true
    cursor.close()
    view.close()
    wake?.()
  }
  /** An object may become visible or invisible without a change of its own (D27). */
  const change = ({ entry, isIn }: VisibilityChange): WatchEvent | undefined => {
    if (!isIn) return watchEvent('DELETED', identityOf(kind, entry, entry.revision))
    if (view.allows(entry)) return watchEvent('ADDED', presentAmong(ctx, kind, entry))
    view.skip(entry)
    return undefined
  }
  /** The next events of the backlog, empty after many that the caller may no longer see; undefined at its end. */
  const takeRest = ({ changes, end }: Backlog): WatchEvent[] | undefined => {
    const events: WatchEvent[] = []
    for (let looked = 0, bytes = 0; looked < maxEvents; looked++) {
      const next = changes[position]
      if (!next) {
        rest = undefined
        isInitial = false
        if (end) events.push(end)
        return events.length ? events : undefined
      }
      const size = next.entry.text.length
      if (events.length && bytes + size > maxBytes) return events
      position++
      const event = change(next)
      if (!event) continue
      events.push(event)
      bytes += size
    }
    return events
  }
  /** The next events of the log; undefined at its end. */
  const take = (): WatchEvent[] | undefined => {
    const events: WatchEvent[] = []
    try {
      for (let looked = 0, bytes = 0; looked < maxEvents; looked++) {
        waiting ??= cursor.take(1)[0]
        if (!waiting) return looked ? events : undefined
        const event = waiting
        const size = event.entry.text.length
        if (events.length && bytes + size > maxBytes) return events
        waiting = undefined
        const seen = event.revision > from ? translate(ctx, kind, view, event) : undefined
        if (!seen) continue
        events.push(seen)
        bytes += size
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
        if (stopped) return undefined
        const events = (rest && takeRest(rest)) ?? take()
        if (events?.length) return events
        if (events) {
          await new Promise(setImmediate) // let others run while the watch skips many events
          continue
        }
        // Send all logged events before changes of visibility.
        const changes = view.changes()
        if (changes.length) {
          rest = { changes }
          position = 0
          continue
        }
        await new Promise<void>(resolve => {
          wake = resolve
          view.wait(resolve)
          cursor.wait(resolve)
        })
      }
    },
    bookmark: () => {
      // A client that reconnects before the end of the initial state needs it from the start.
      if (isInitial && rest) return bookmarkAt(kind, requested, false)
      return bookmarkAt(kind, waiting ? waiting.revision - 1 : cursor.revision, false)
    },
    stop,
  }
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
function translate(ctx: Context, kind: Kind, view: View, event: StoreEvent): WatchEvent | undefined {
  const { isIn, wasIn } = view.moved(event)
  if (isIn) return eventOf(ctx, kind, event.entry, wasIn ? 'MODIFIED' : 'ADDED')
  if (!wasIn) return undefined
  const previous = event.previous as Entry
  // The last visible state may be one that the server has not sent, and that the caller may no longer see.
  if (!view.allows(previous)) return watchEvent('DELETED', identityOf(kind, previous, event.revision))
  if (event.type === 'deleted') return eventOf(ctx, kind, event.entry, 'DELETED')
  return watchEvent('DELETED', atRevision(presentAmong(ctx, kind, previous).object, event.revision))
}

const atRevision = (object: Resource, revision: number): Document =>
  documentOf({ ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } })

/** For an object that the caller may no longer see: only what identifies it. */
function identityOf(kind: Kind, entry: Entry, revision: number): Document {
  const { name, namespace, uid, creationTimestamp } = openPart(kind, entry).metadata
  const metadata = { name, namespace, uid, creationTimestamp }
  return atRevision({ apiVersion: kind.apiVersion, kind: kind.kind, metadata } as Resource, revision)
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
