// A watch: from which revision, through which selector, and what each event looks like from there (wire §1.12).

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
import { isPlain, present } from './redact.ts'
import { select } from './selection.ts'
import { parseVersion } from './versions.ts'
import { fixedView, type Move, movingView, type View } from './watch-view.ts'

const batch = 256

export async function watch(ctx: Context, kind: Kind, options: WatchOptions = {}): Promise<Watch> {
  const selected = select(ctx, kind, options)
  const version = parseVersion(options.resourceVersion)
  checkInitial(options, version)
  const fromState = options.sendInitialEvents ?? (version === undefined || version === 0)
  const state = fromState ? ctx.store.list(selected.query) : undefined
  const pending: WatchEvent[] = (state?.entries ?? []).map(entry => watchEvent('ADDED', present(ctx, kind, entry)))
  const start = state ? state.revision : version && version > 0 ? version : ctx.store.revision
  if (options.sendInitialEvents && options.allowWatchBookmarks) pending.push(bookmarkAt(kind, start, true))
  try {
    // A version that is still to come: silent until then.
    const cursor = ctx.store.watch(kind.id, Math.min(start, ctx.store.revision))
    const view = options.refilter
      ? movingView(ctx, kind, selected, Math.min(start, ctx.store.revision), options.refilter)
      : fixedView(selected)
    return follow(ctx, kind, { cursor, view, from: start, pending })
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return ended(watchEvent('ERROR', statusDocument(tooOld(start, error).status)))
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

const tooOld = (asked: number, error: StoreError) => expired(`too old resource version: ${asked} (${error.revision})`)

type Start = { readonly cursor: Cursor; readonly view: View; readonly from: number; readonly pending: WatchEvent[] }

function follow(ctx: Context, kind: Kind, { cursor, view, from, pending: initial }: Start): Watch {
  let pending: WatchEvent[] = initial
  let stopped = false
  let wake: (() => void) | undefined
  const take = (): WatchEvent[] => {
    try {
      return cursor
        .take(batch)
        .flatMap(event => (event.revision > from ? (translate(ctx, kind, view.moved(event), event) ?? []) : []))
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      stop()
      return [watchEvent('ERROR', statusDocument(tooOld(cursor.revision, error).status))]
    }
  }
  const stop = () => {
    stopped = true
    cursor.close()
    view.close()
    wake?.()
  }
  return {
    async next() {
      for (;;) {
        const taken = pending.length ? pending : stopped ? [] : take()
        // Only once everything that happened was told does it count what may be seen now.
        const events = taken.length || stopped ? taken : view.changes().map(change => turned(ctx, kind, change))
        pending = []
        if (events.length) return events
        if (stopped) return undefined
        await new Promise<void>(resolve => {
          wake = resolve
          view.wait(resolve)
          cursor.wait(resolve)
        })
      }
    },
    bookmark: () => bookmarkAt(kind, cursor.revision, false),
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

/** What an event is to this selection: entering is ADDED, leaving is DELETED with what was last seen. */
function translate(ctx: Context, kind: Kind, { isIn, wasIn }: Move, event: StoreEvent): WatchEvent | undefined {
  if (isIn) return shared(ctx, kind, event, wasIn ? 'MODIFIED' : 'ADDED', event.entry)
  if (!wasIn) return undefined
  return event.type === 'deleted' ? shared(ctx, kind, event, 'DELETED', event.entry) : left(ctx, kind, event)
}

/** An object that came into view, or went out of it, without changing itself (D27). */
function turned(
  ctx: Context,
  kind: Kind,
  { entry, isIn }: { readonly entry: Entry; readonly isIn: boolean },
): WatchEvent {
  return watchEvent(isIn ? 'ADDED' : 'DELETED', present(ctx, kind, entry))
}

function left(ctx: Context, kind: Kind, { previous, revision }: StoreEvent): WatchEvent {
  const { object } = present(ctx, kind, previous as Entry)
  return watchEvent(
    'DELETED',
    documentOf({ ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } }),
  )
}

const made = new WeakMap<StoreEvent, Map<string, WatchEvent>>()

/** One WatchEvent, and so one serialisation, for all who watch; kinds with secrets are opened for each and not kept. */
function shared(ctx: Context, kind: Kind, event: StoreEvent, type: WatchEvent['type'], entry: Entry): WatchEvent {
  if (!isPlain(kind)) return watchEvent(type, present(ctx, kind, entry))
  const all = made.get(event) ?? new Map<string, WatchEvent>()
  made.set(event, all)
  const one = all.get(type) ?? watchEvent(type, present(ctx, kind, entry))
  all.set(type, one)
  return one
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
