// The rows of a list: read page by page as tables, then kept current by the shared watches.

import { useCallback, useSyncExternalStore } from 'react'
import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, Resource } from '../../api/object.ts'
import { cellsIn } from '../../client/table-rows.ts'
import { type Feed, type FeedEvent, keyOf, slim, subscribe } from './hub.ts'
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
  /** How many rows there are beyond those that were read. */
  readonly beyond: number
}

/** More rows are not sorted in the browser, and not kept. */
const maxRows = 10_000
const pageSize = 500
const pollEvery = 15_000
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

function storeOf(key: string, kind: Kind): RowStore {
  const store = stores.get(key) ?? openStore(key, kind)
  stores.set(key, store)
  return store
}

type RowStore = { readonly current: () => Rows; readonly follow: (changed: () => void) => () => void }

function openStore(key: string, kind: Kind): RowStore {
  const { kind: _, ...selection } = JSON.parse(key) as Feed
  const callbacks = new Set<() => void>()
  let known = new Map<string, Row>()
  let value: Rows = { rows: [], state: 'loading', beyond: 0 }
  let stop: (() => void) | undefined
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
    let polling: ReturnType<typeof setInterval> | undefined
    const load = async (state: Rows['state']) => {
      const mine = ++reading
      buffered = []
      try {
        const { rows, beyond } = await readPages(kind, selection, partial => {
          if (!isStopped && mine === reading && value.state === 'loading') set({ rows: sorted(partial) })
        })
        if (isStopped || mine !== reading) return
        known = rows
        set({ rows: sorted(known), state, beyond, error: undefined })
        apply(buffered)
        buffered = undefined
      } catch (error) {
        if (isStopped || mine !== reading) return
        buffered = undefined
        const isLasting = error instanceof ApiError && error.code < 500
        set(value.rows.length && !isLasting ? { state: 'stale', error } : { state: 'failed', error, rows: [] })
      }
    }
    const poll = () => {
      if (polling !== undefined) return
      polling = setInterval(() => void load('polled'), pollEvery)
      void load('polled')
    }
    // A proxy that holds back the first bytes of a watch must not keep the page empty.
    const impatience = setTimeout(poll, patience)
    const unsubscribe = subscribe(JSON.parse(key) as Feed, {
      opened: () => {
        clearTimeout(impatience)
        clearInterval(polling)
        polling = undefined
        void load('live')
      },
      events: events => (buffered ? void buffered.push(...events) : apply(events)),
      lost: isLost => {
        setStale(key, isLost)
        set({ state: isLost ? 'stale' : 'live' })
      },
      polled: () => {
        clearTimeout(impatience)
        poll()
      },
    })
    stop = () => {
      isStopped = true
      clearTimeout(impatience)
      setStale(key, false)
      clearInterval(polling)
      unsubscribe()
    }
  }

  return {
    current: () => value,
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

type Pages = { readonly rows: Map<string, Row>; readonly beyond: number }

async function readPages(
  kind: Kind,
  selection: Omit<Feed, 'kind'>,
  progress: (rows: ReadonlyMap<string, Row>) => void,
): Promise<Pages> {
  const found = new Map<string, Row>()
  let next: string | undefined
  let beyond = 0
  do {
    const page = await client.list(kind, { ...selection, limit: pageSize, ...(next ? { continue: next } : {}) })
    for (const { object } of page.items) {
      const row = rowOf(slim(object))
      found.set(row.id, row)
    }
    next = page.continue
    beyond = page.remainingItemCount ?? 0
    if (next) progress(found)
  } while (next && found.size < maxRows)
  return { rows: found, beyond: next ? beyond : 0 }
}

/** The number of objects that the caller sees. */
export async function countOf(kind: Kind): Promise<number> {
  const { items, remainingItemCount = 0 } = await client.list(kind, { limit: 1 })
  return items.length + remainingItemCount
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
