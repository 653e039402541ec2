// The informer follows all objects of a kind: it lists, watches, and lists again when the version is too old.

import { ApiError, type Status } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { Document, List, Resources, Watch } from '../api/resources.ts'

export type InformerOptions<T> = {
  readonly resources: Resources
  readonly kind: Kind
  /**
   * Whether the informer keeps an object; absent: it keeps all. A filter on the bytes (see `mentions`) avoids parsing,
   * so that 100,000 ignored objects are cheap to follow.
   */
  readonly counts?: (document: Document) => boolean
  /** What to keep of an object. */
  readonly keep: (object: Resource) => T
  /** Called for every change, in order; undefined: the object does not exist. */
  readonly changed?: (ref: Ref, now: T | undefined, before: T | undefined) => void
  /** Called for every deletion that a watch saw, also of ignored objects. */
  readonly deleted?: (object: Resource) => void
  /** Called after every list: the informer may have missed deletions before it. */
  readonly listed?: () => void
  /** Called after every contact with the server: a list, or a batch of events, bookmarks included. */
  readonly contacted?: () => void
  /** Lists again after a failure instead of resuming the watch. `contacted` is then called as soon as the server is back, not with its next event. */
  readonly listsAfterFailure?: boolean
  /** Called for failures that are retried. */
  readonly failed?: (error: unknown) => void
  readonly wait?: (milliseconds: number) => Promise<void>
}

export interface Informer<T> {
  /** Resolves once the first list is in. */
  readonly ready: Promise<void>
  get(ref: Ref): T | undefined
  values(): Iterable<T>
  refs(): Iterable<Ref>
  stop(): void
}

const errorOf = ({ code = 500, reason = '', message = '' }: Status) => new ApiError(code, reason, message)
const sleep = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds).unref())
/** Pages keep the memory of a large list small. Informers that start together get the same pages from the list cache. */
const pageSize = 500
const minDelay = 100
const slot = (ref: Ref) => `${ref.namespace}/${ref.name}`

export function startInformer<T>(options: InformerOptions<T>): Informer<T> {
  const { resources, kind, counts = () => true, keep, changed = () => {}, failed = () => {}, wait = sleep } = options
  const known = new Map<string, { ref: Ref; value: T }>()
  let current: Watch | undefined
  /** The last seen resourceVersion; undefined if only a new list helps. */
  let version: string | undefined
  let stopped = false
  let isReady: () => void = () => {}
  const ready = new Promise<void>(resolve => {
    isReady = resolve
  })

  const set = ({ ref, object }: Document) => {
    const key = slot(ref)
    const before = known.get(key)?.value
    const value = keep(object)
    known.set(key, { ref, value })
    changed(ref, value, before)
  }
  const drop = (ref: Ref) => {
    // Most informers keep few objects of many.
    if (known.size === 0) return
    const key = slot(ref)
    const before = known.get(key)
    if (before === undefined) return
    known.delete(key)
    changed(ref, undefined, before.value)
  }

  const relist = async (): Promise<string | undefined> => {
    const gone = new Set(known.keys())
    let next: string | undefined
    let listed: string
    do {
      const page: List = await resources.list(kind, { limit: pageSize, ...(next ? { continue: next } : {}) })
      if (stopped) return undefined
      for (const document of page.items) {
        if (!counts(document)) continue
        gone.delete(slot(document.ref))
        set(document)
      }
      listed = page.resourceVersion
      next = page.continue
    } while (next)
    for (const one of gone) drop(known.get(one)?.ref as Ref)
    options.listed?.()
    options.contacted?.()
    return listed
  }

  /** Follows the watch until it ends. Returns whether to continue at once. */
  const follow = async (watch: Watch): Promise<boolean> => {
    let progress = false
    const openedAt = performance.now()
    for (let events = await watch.next(); events; events = await watch.next()) {
      for (const { type, document } of events) {
        if (stopped) return progress
        if (type === 'ERROR') {
          version = undefined
          const error = errorOf(document.object as unknown as Status)
          if (error.code !== 410) failed(error)
          // Until the next list, this informer is older than the data. Permissions must not be.
          return progress || (error.code === 410 && performance.now() - openedAt >= minDelay)
        }
        progress = true
        if (type === 'BOOKMARK') continue
        if (type === 'DELETED' || !counts(document)) drop(document.ref)
        else set(document)
        if (type === 'DELETED') options.deleted?.(document.object)
      }
      options.contacted?.()
      version = watch.bookmark().document.object.metadata.resourceVersion
    }
    return progress
  }

  const turn = async (): Promise<boolean> => {
    try {
      version ??= await relist()
      if (stopped || version === undefined) return false
      isReady()
      current = await resources.watch(kind, { resourceVersion: version, allowWatchBookmarks: true })
      if (stopped) current.stop() // stopped before the watch was open
      return await follow(current)
    } catch (error) {
      if (options.listsAfterFailure || (error instanceof ApiError && error.code === 410)) version = undefined
      failed(error)
      return false
    }
  }

  const run = async () => {
    for (let delay = 0; !stopped; ) {
      // A watch that ends without events counts as a failure: reopening it at once would be a busy loop.
      delay = (await turn()) ? 0 : Math.min(delay * 2 || minDelay, 10_000)
      if (delay > 0 && !stopped) await wait(delay)
    }
  }
  void run()

  return {
    ready,
    get: ref => known.get(slot(ref))?.value,
    *values() {
      for (const { value } of known.values()) yield value
    },
    *refs() {
      for (const { ref } of known.values()) yield ref
    },
    stop() {
      stopped = true
      current?.stop()
      isReady()
    },
  }
}
