// Lists all pages of a collection, and watches it with automatic reconnect.

import { ApiError, type Status } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Resources, Selection } from '../api/resources.ts'

const pageSize = 500

/** All objects of a kind, page by page. An expired continue token is replaced by a new one at the same key (D37). */
export async function* listAll(
  resources: Pick<Resources, 'list'>,
  kind: Kind,
  selection: Selection = {},
): AsyncGenerator<Resource> {
  let next: string | undefined
  do {
    const page = await resources
      .list(kind, { ...selection, limit: pageSize, ...(next ? { continue: next } : {}) })
      .catch(error => resources.list(kind, { ...selection, limit: pageSize, continue: continueOf(error) }))
    for (const { object } of page.items) yield object
    next = page.continue
  } while (next)
}

function continueOf(error: unknown): string {
  const token = error instanceof ApiError && error.code === 410 ? error.status.metadata.continue : undefined
  if (token === undefined) throw error
  return token
}

export type Change = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Resource }

export type FollowOptions = Selection & {
  readonly signal?: AbortSignal
  /** Objects that the caller has read already. Those that are gone by now are yielded as DELETED. */
  readonly known?: readonly Resource[]
  readonly sleep?: (milliseconds: number) => Promise<void>
  /** Called when the connection is lost, but not when only the history has expired. An error thrown here ends the loop. */
  readonly onDisconnect?: (error: unknown) => void
  /** Called when data arrives again. */
  readonly onReconnect?: () => void
}

const minDelay = 200
const maxDelay = 30_000

/**
 * Yields all objects as ADDED, then every change. Resumes after a lost connection. If the resource version has expired, lists again and
 * yields the differences. Ends on errors that a retry cannot fix: 4xx except 410 and 429.
 */
export async function* follow(
  resources: Pick<Resources, 'list' | 'watch'>,
  kind: Kind,
  options: FollowOptions = {},
): AsyncGenerator<Change> {
  const { signal, sleep = pause, onDisconnect, onReconnect, known: read = [], ...selection } = options
  const known = new Map(read.map(object => [keyOf(object), object]))
  let version: string | undefined
  let wait = minDelay
  while (!signal?.aborted) {
    try {
      if (version === undefined) {
        const { items, resourceVersion } = await resources.list(kind, selection)
        for (const change of differences(
          known,
          items.map(({ object }) => object),
        ))
          yield change
        version = resourceVersion
        onReconnect?.()
      }
      for await (const event of eventsFrom(resources, kind, { ...selection, resourceVersion: version }, signal)) {
        version = event.object.metadata.resourceVersion ?? version
        wait = minDelay
        onReconnect?.()
        if (event.type === 'BOOKMARK') continue
        if (event.type === 'DELETED') known.delete(keyOf(event.object))
        else known.set(keyOf(event.object), event.object)
        yield { type: event.type, object: event.object }
      }
    } catch (error) {
      if (signal?.aborted) return
      if (isFinal(error)) throw error
      if (error instanceof ApiError && error.code === 410) version = undefined
      else onDisconnect?.(error)
    }
    if (signal?.aborted) return
    await sleep(wait)
    wait = Math.min(maxDelay, wait * 2)
  }
}

const keyOf = ({ metadata }: Resource) => `${metadata.namespace ?? ''}/${metadata.name}`
const isFinal = (error: unknown) =>
  !(error instanceof ApiError) || (error.code >= 400 && error.code < 500 && error.code !== 410 && error.code !== 429)

function differences(known: Map<string, Resource>, now: readonly Resource[]): Change[] {
  const names = new Set(now.map(keyOf))
  const gone = [...known].filter(([key]) => !names.has(key))
  const changes: Change[] = gone.map(([, object]) => ({ type: 'DELETED', object }))
  for (const object of now) {
    const before = known.get(keyOf(object))
    if (before?.metadata.resourceVersion === object.metadata.resourceVersion && before) continue
    changes.push({ type: before ? 'MODIFIED' : 'ADDED', object })
  }
  for (const [key] of gone) known.delete(key)
  for (const object of now) known.set(keyOf(object), object)
  return changes
}

type Event = { readonly type: Change['type'] | 'BOOKMARK'; readonly object: Resource }
type From = Selection & { readonly resourceVersion: string }

async function* eventsFrom(
  resources: Pick<Resources, 'watch'>,
  kind: Kind,
  from: From,
  signal?: AbortSignal,
): AsyncGenerator<Event> {
  const watch = await resources.watch(kind, { ...from, allowWatchBookmarks: true })
  const stop = () => watch.stop()
  signal?.addEventListener('abort', stop)
  try {
    for (let events = await watch.next(); events; events = await watch.next())
      for (const { type, document } of events) {
        if (type === 'ERROR') {
          const { code = 500, reason = '', message = '' } = document.object as unknown as Status
          throw new ApiError(code, reason, message)
        }
        yield { type, object: document.object }
      }
  } finally {
    signal?.removeEventListener('abort', stop)
    stop()
  }
}

const pause = (milliseconds: number) =>
  new Promise<void>(resolve => {
    setTimeout(resolve, milliseconds)
  })
