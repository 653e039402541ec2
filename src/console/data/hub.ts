// Shares watches between all tabs of a browser: HTTP/1.1 has six connections per server, so at most three are watches.
// One tab leads: it holds a lock, opens the watches and broadcasts their events. If it closes, another tab leads.

import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import type { Watch } from '../../api/resources.ts'
import { AuditEvent } from '../../kinds/audit-event.ts'
import { shownKinds } from './places.ts'
import { basePath, boundUser, rows, server } from './server.ts'

/** What to watch. The key is its JSON. */
export type Feed = {
  readonly kind: string
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

export type FeedEvent = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Resource }

export type FeedListener = {
  /** The watch is open. A list of this version or a later one, plus the events from now on, is complete. */
  readonly opened: (version: string) => void
  readonly events: (events: readonly FeedEvent[]) => void
  /** Whether the connection is lost; the data may be stale. */
  readonly lost: (isLost: boolean) => void
  /** There are too many watches: ask again from time to time. */
  readonly polled: () => void
}

type Message =
  | { readonly type: 'who' }
  | { readonly type: 'want' | 'leave'; readonly key: string; readonly tab: string }
  | { readonly type: 'opened'; readonly key: string; readonly version: string; readonly only?: string }
  | { readonly type: 'polled'; readonly key: string }
  | { readonly type: 'lost'; readonly key: string; readonly isLost: boolean }
  | { readonly type: 'events'; readonly key: string; readonly events: readonly FeedEvent[] }

const maxWatches = 3
const wantEvery = 10_000
/** Browsers delay timers of hidden tabs by up to a minute. */
const forgetAfter = 150_000
const batchFor = 80
export const refusedFor = 60_000
const sessions = new BroadcastChannel(`platform-console sessions ${basePath}`)
const tab = crypto.randomUUID()
const listeners = new Map<string, Set<FeedListener>>()
const sessionListeners = new Set<(change: SessionChange) => void>()
/** `out`: somebody has signed out, so nothing of the session may stay. */
export type SessionChange = 'in' | 'out'
/** Opened for the user of the page: rows of one user must not reach another who uses the same browser. */
let channel: BroadcastChannel | undefined

export const keyOf = (feed: Feed): string => JSON.stringify(feed)

export function subscribe(feed: Feed, listener: FeedListener): () => void {
  open()
  const key = keyOf(feed)
  const set = listeners.get(key) ?? new Set()
  listeners.set(key, set.add(listener))
  post({ type: 'want', key, tab })
  return () => {
    set.delete(listener)
    if (set.size > 0) return
    listeners.delete(key)
    post({ type: 'leave', key, tab })
  }
}

/** Called when somebody signed in or out in another tab. */
export function followSessions(callback: (change: SessionChange) => void): () => void {
  sessionListeners.add(callback)
  return () => sessionListeners.delete(callback)
}
export const announceSession = (change: SessionChange): void => sessions.postMessage(change)
sessions.onmessage = ({ data }: MessageEvent<SessionChange>) => {
  for (const callback of sessionListeners) callback(data)
}

function receive(message: Message): void {
  if (message.type === 'who') wantAll()
  if (message.type === 'want' || message.type === 'leave') leader?.(message)
  if (!('key' in message)) return
  if (message.type === 'opened' && message.only && message.only !== tab) return
  for (const listener of listeners.get(message.key) ?? []) tell(listener, message)
}

function tell(listener: FeedListener, message: Message): void {
  if (message.type === 'opened') listener.opened(message.version)
  if (message.type === 'events') listener.events(message.events)
  if (message.type === 'lost') listener.lost(message.isLost)
  if (message.type === 'polled') listener.polled()
}

/** A channel does not deliver to its own tab. */
function post(message: Message): void {
  channel?.postMessage(message)
  receive(message)
}

const wantAll = () => {
  for (const key of listeners.keys()) post({ type: 'want', key, tab })
}

let leader:
  | ((message: { readonly type: 'want' | 'leave'; readonly key: string; readonly tab: string }) => void)
  | undefined
function open(): void {
  if (channel) return
  const name = `platform-console ${basePath} ${boundUser()}`
  channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }: MessageEvent<Message>) => receive(data)
  setInterval(wantAll, wantEvery)
  addEventListener('pagehide', () => {
    for (const key of listeners.keys()) channel?.postMessage({ type: 'leave', key, tab } satisfies Message)
  })
  addEventListener('pageshow', wantAll)
  void navigator.locks.request(name, () => {
    leader = lead()
    post({ type: 'who' })
    return new Promise<never>(() => {}) // until the tab closes
  })
}

type Open = {
  readonly wanted: Map<string, number>
  /** The version of the last event, or where the watch begins. */
  version: string | undefined
  isLost: boolean
  readonly stop: () => void
}

function lead(): NonNullable<typeof leader> {
  const open = new Map<string, Open>()
  /** Feeds that the server refused, with the time of the next attempt. */
  const refused = new Map<string, number>()
  const close = (key: string) => {
    open.get(key)?.stop()
    open.delete(key)
  }
  setInterval(() => {
    const limit = Date.now() - forgetAfter
    for (const [key, { wanted }] of open) {
      for (const [tab, time] of wanted) if (time < limit) wanted.delete(tab)
      if (wanted.size === 0) close(key)
    }
  }, wantEvery)
  return ({ type, key, tab }) => {
    const found = open.get(key)
    if (type === 'leave') {
      found?.wanted.delete(tab)
      if (found?.wanted.size === 0) close(key)
      return
    }
    if (found) {
      const isNew = !found.wanted.has(tab)
      found.wanted.set(tab, Date.now())
      if (isNew && found.version) post({ type: 'opened', key, version: found.version, only: tab })
      if (isNew && found.isLost) post({ type: 'lost', key, isLost: true })
      return
    }
    if (open.size >= maxWatches || (refused.get(key) ?? 0) > Date.now()) return post({ type: 'polled', key })
    const ending = new AbortController()
    const one: Open = {
      wanted: new Map([[tab, Date.now()]]),
      version: undefined,
      isLost: false,
      stop: () => ending.abort(),
    }
    open.set(key, one)
    void keepOpen(key, one, ending.signal).catch((error: unknown) => {
      // Every attempt is an event of the audit log. After a new sign-in it works at once.
      if (!(error instanceof ApiError && error.code === 401)) refused.set(key, Date.now() + refusedFor)
      close(key)
      post({ type: 'polled', key })
    })
  }
}

const shortest = 500
const longest = 15_000

/** Resumes after every end. Rejects on errors that a retry cannot fix. */
async function keepOpen(key: string, one: Open, signal: AbortSignal): Promise<void> {
  const { kind: id, ...selection } = JSON.parse(key) as Feed
  const kind = [...shownKinds, AuditEvent].find(kind => kind.id === id)
  if (!kind) throw new TypeError(`${id} has no pages`)
  // Audit events have no secrets, and their pages show more than the columns.
  const { list, watch: follow } = kind === AuditEvent ? server : rows
  const setLost = (isLost: boolean) => {
    if (one.isLost === isLost) return
    one.isLost = isLost
    post({ type: 'lost', key, isLost })
  }
  const send = batching(events => post({ type: 'events', key, events }))
  let delay = shortest
  while (!signal.aborted) {
    try {
      const isFresh = one.version === undefined
      one.version ??= (await list(kind, { ...selection, limit: 1 })).resourceVersion
      const watch = await follow(kind, { ...selection, resourceVersion: one.version, allowWatchBookmarks: true })
      if (isFresh) post({ type: 'opened', key, version: one.version })
      setLost(false)
      delay = shortest
      await readAll(watch, one, { send, signal })
    } catch (error) {
      if (error instanceof ApiError && error.code === 410) one.version = undefined
      else if (error instanceof ApiError && error.code >= 400 && error.code < 500 && error.code !== 429) throw error
      else setLost(true)
    }
    if (!signal.aborted) await new Promise(resolve => setTimeout(resolve, delay))
    delay = Math.min(longest, delay * 2)
  }
}

type Reading = { readonly send: (event: FeedEvent) => void; readonly signal: AbortSignal }

async function readAll(watch: Watch, one: Open, { send, signal }: Reading): Promise<void> {
  const stop = () => watch.stop()
  signal.addEventListener('abort', stop)
  try {
    for (let events = await watch.next(); events; events = await watch.next())
      for (const { type, document } of events) {
        const { object } = document
        if (type === 'ERROR') {
          const {
            code = 500,
            reason = '',
            message = '',
          } = object as { code?: number; reason?: string; message?: string }
          throw new ApiError(code, reason, message)
        }
        one.version = object.metadata.resourceVersion ?? one.version
        if (type !== 'BOOKMARK') send({ type, object: slim(object) })
      }
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
  }
}

/** Rows do not show managed fields, which are most of their size. */
export function slim(object: Resource): Resource {
  const { managedFields: _, annotations: __, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Collects events for a moment, so that a burst is one update of the page. */
function batching(send: (events: readonly FeedEvent[]) => void): (event: FeedEvent) => void {
  let waiting: FeedEvent[] = []
  return event => {
    if (waiting.push(event) > 1) return
    setTimeout(() => {
      const events = waiting
      waiting = []
      send(events)
    }, batchFor)
  }
}
