// The rows of a list: read page by page as tables, then kept current by the shared watches.

import { useCallback, useSyncExternalStore } from 'react'
import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, Resource } from '../../api/object.ts'
import { cellsIn } from '../../client/table-rows.ts'
import { type Feed, type FeedEvent, keyOf, refusedFor, slim, subscribe } from './hub.ts'
import { rows as client } from './server.ts'
import { setStale } from './stale.ts'

export type Row = {
  readonly id: string
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly version: string
  readonly created: string
  readonly labels: { readonly [key: string]: string }
  readonly isDeleting: boolean
  readonly cells: { readonly [column: string]: Json }
}

export type Rows = {
  readonly rows: readonly Row[]
  readonly state: 'loading' | 'live' | 'polled' | 'stale' | 'failed'
  readonly error?: unknown
  /** How many objects there are beyond those that were read. undefined: some, and the server does not tell the number. */
  readonly beyond: number | undefined
}

/** More rows are not sorted in the browser, and not kept. */
const maxRows = 10_000
/** The first page fills the screen soon. Later pages are larger: each is a request, and still parsed within a frame or two. */
const firstPage = 200
const laterPages = 2000
const maxCounted = 500
const pollEvery = 15_000
const retryAfter = 5000
/** Milliseconds to wait for a watch before the list is read without one. */
const patience = 1500
/** A list that nobody shows stays for a moment, so that going back is instant. */
const keepFor = 30_000

const stores = new Map<string, RowStore>()

export function useRows(kind: Kind, selection: Omit<Feed, 'kind'> = {}): Rows {
  const feed: Feed = { kind: kind.id, ...selection }
  const key = keyOf(feed)
  const follow = useCallback((changed: () => void) => storeOf(key, kind).follow(changed), [key, kind])
  const read = useCallback(() => storeOf(key, kind).current(), [key, kind])
  return useSyncExternalStore(follow, read)
}

/** Rows that another page has read already, without a request. */
export const loadedRows = (kind: Kind): readonly Row[] => stores.get(keyOf({ kind: kind.id }))?.current().rows ?? []

/** Begins to read a list before its page is drawn. */
export const prepareRows = (kind: Kind): void => storeOf(keyOf({ kind: kind.id }), kind).follow(() => {})()

function storeOf(key: string, kind: Kind): RowStore {
  const store = stores.get(key) ?? openStore(key, kind)
  stores.set(key, store)
  return store
}

type RowStore = {
  readonly current: () => Rows
  readonly follow: (changed: () => void) => () => void
  readonly reload: () => void
}

/** After a new sign-in. */
export function reloadRows(): void {
  for (const { reload } of stores.values()) reload()
}

function openStore(key: string, kind: Kind): RowStore {
  const { kind: _, ...selection } = JSON.parse(key) as Feed
  const callbacks = new Set<() => void>()
  let known = new Map<string, Row>()
  let value: Rows = { rows: [], state: 'loading', beyond: 0 }
  let stop: (() => void) | undefined
  let reload: (() => void) | undefined
  let closing: ReturnType<typeof setTimeout> | undefined
  const set = (next: Partial<Rows>) => {
    value = { ...value, ...next }
    for (const callback of callbacks) callback()
  }
  const apply = (events: readonly FeedEvent[]) => {
    const next = new Map(known)
    for (const { type, object } of events) {
      const row = rowOf(object)
      const old = next.get(row.id)
      // Events of a watch that began before the list may be older than the list.
      if (old && BigInt(old.version) > BigInt(row.version)) continue
      if (type === 'DELETED') next.delete(row.id)
      else next.set(row.id, row)
    }
    known = next
    set({ rows: sorted(known) })
  }

  const start = () => {
    let isStopped = false
    let reading = 0
    let buffered: FeedEvent[] | undefined
    let isPolled = false
    /** The next time that the list is read without an event. */
    let next: ReturnType<typeof setTimeout> | undefined
    /** The versions of the list and of the watch. Together they are complete if the list is not older. */
    let listed: string | undefined
    let watched: string | undefined
    /**
     * Whether to read the list once more. A permission that was lost after a list and before its watch gives no event, so the first
     * list of a watch is only a preview.
     */
    let isAgain = false
    /** The state once the list is complete. */
    let state: Rows['state'] = 'loading'
    const isTooOld = () => listed !== undefined && watched !== undefined && BigInt(listed) < BigInt(watched)
    const load = async (): Promise<void> => {
      const mine = ++reading
      clearTimeout(next)
      listed = undefined
      buffered = []
      try {
        const pages = await readPages(kind, selection, (partial, version) => {
          listed = version
          if (isStopped || mine !== reading || isTooOld()) return false
          if (value.state === 'loading') set({ rows: sorted(partial) })
          return true
        })
        if (isStopped || mine !== reading) return
        if (!pages) return await load()
        known = pages.rows
        const events = buffered
        buffered = undefined
        set({ rows: sorted(known), state, beyond: pages.beyond, error: undefined })
        if (events.length) apply(events)
        if (isAgain) {
          isAgain = false
          void load()
        }
        if (isPolled) loadAfter(pollEvery)
      } catch (error) {
        if (isStopped || mine !== reading) return
        buffered = undefined
        const isLasting = isRefusal(error)
        if (isLasting) known = new Map()
        set(value.rows.length && !isLasting ? { state: 'stale', error } : { state: 'failed', error, rows: [] })
        // After a new sign-in, the lists are read at once.
        loadAfter(isLasting ? refusedFor : isSignedOut(error) ? pollEvery : retryAfter)
      }
    }
    const loadAfter = (delay: number) => {
      clearTimeout(next)
      next = setTimeout(() => void load(), delay)
    }
    /** Takes over what was read meanwhile, unless `isUseless`. */
    const settle = (reached: 'live' | 'polled', isUseless: boolean) => {
      state = reached
      if (isUseless) void load()
      else if (!buffered) set({ state })
    }
    const poll = () => {
      if (isPolled) return
      watched = undefined
      isPolled = true
      if (isRefusal(value.error)) state = 'polled'
      else settle('polled', value.state !== 'loading')
    }
    // A proxy that holds back the first bytes of a watch must not keep the list without a state.
    const impatience = setTimeout(poll, patience)
    const unsubscribe = subscribe(JSON.parse(key) as Feed, {
      opened: version => {
        clearTimeout(impatience)
        isPolled = false
        watched = version
        isAgain = buffered !== undefined
        settle('live', !isAgain)
      },
      events: events => (buffered ? void buffered.push(...events) : apply(events)),
      lost: isLost => {
        setStale(key, isLost)
        // A list that was not read is not an empty one.
        if (value.state !== 'loading' && value.state !== 'failed') set({ state: isLost ? 'stale' : 'live' })
      },
      polled: () => {
        clearTimeout(impatience)
        poll()
      },
    })
    void load()
    reload = () => void load()
    stop = () => {
      isStopped = true
      reload = undefined
      clearTimeout(impatience)
      setStale(key, false)
      clearTimeout(next)
      unsubscribe()
    }
  }

  return {
    current: () => value,
    reload: () => reload?.(),
    follow(changed) {
      callbacks.add(changed)
      clearTimeout(closing)
      if (!stop) start()
      return () => {
        callbacks.delete(changed)
        if (callbacks.size > 0) return
        closing = setTimeout(() => {
          stop?.()
          stop = undefined
          stores.delete(key)
        }, keepFor)
      }
    },
  }
}

/** Whether the next attempt will fail as well. A session can be renewed, a list begun again, and a limit passes. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ApiError && error.code < 500 && ![401, 410, 429].includes(error.code)

const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.code === 401

type Pages = Pick<Rows, 'beyond'> & { readonly rows: Map<string, Row> }

/** undefined: `progress` returned false, which ends the read. */
async function readPages(
  kind: Kind,
  selection: Omit<Feed, 'kind'>,
  progress: (rows: ReadonlyMap<string, Row>, version: string) => boolean,
): Promise<Pages | undefined> {
  const found = new Map<string, Row>()
  let next: string | undefined
  let beyond: number | undefined
  do {
    const limit = Math.min(next ? laterPages : firstPage, maxRows - found.size)
    const page = await client.list(kind, { ...selection, limit, ...(next ? { continue: next } : {}) })
    for (const { object } of page.items) {
      const row = rowOf(slim(object))
      found.set(row.id, row)
    }
    next = page.continue
    // The server sends no number to callers who see only some of the objects.
    beyond = page.remainingItemCount
    if (!progress(found, page.resourceVersion)) return undefined
  } while (next && found.size < maxRows)
  return { rows: found, beyond: next ? beyond : 0 }
}

/** The number of objects that the caller sees. */
export async function countOf(kind: Kind): Promise<{ readonly number: number; readonly hasMore: boolean }> {
  const first = await client.list(kind, { limit: 1 })
  const { items, remainingItemCount } = first
  if (!first.continue || remainingItemCount !== undefined)
    return { number: items.length + (remainingItemCount ?? 0), hasMore: false }
  // A caller who sees only a part of the kind gets no number.
  const page = await client.list(kind, { limit: maxCounted })
  return { number: page.items.length, hasMore: Boolean(page.continue) }
}

function rowOf(object: Resource): Row {
  const {
    name = '',
    namespace = '',
    uid = '',
    resourceVersion = '0',
    creationTimestamp = '',
    labels = {},
  } = object.metadata
  return {
    id: `${namespace}/${name}`,
    name,
    namespace,
    uid,
    version: resourceVersion,
    created: creationTimestamp,
    labels,
    isDeleting: object.metadata.deletionTimestamp !== undefined,
    cells: cellsIn(object) ?? {},
  }
}

const byKey = ({ id: one }: Row, { id: other }: Row) => (one < other ? -1 : one > other ? 1 : 0)
const sorted = (rows: ReadonlyMap<string, Row>): readonly Row[] => [...rows.values()].sort(byKey)
