// Follows all objects of a kind: list, watch, list again when the watch is too old. Works on any Resources, near or far.

import { ApiError } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { Resources, Watch } from '../api/resources.ts'

export type InformerOptions<T> = {
  readonly resources: Resources
  readonly kind: Kind
  /** What to keep of an object. */
  readonly keep: (object: Resource) => T
  /** Told of every difference, in order; undefined: not there (any more). */
  readonly changed?: (ref: Ref, now: T | undefined, before: T | undefined) => void
  /** Told of failures that are tried again. */
  readonly failed?: (error: unknown) => void
  readonly wait?: (milliseconds: number) => Promise<void>
}

export interface Informer<T> {
  /** Resolves once the first list is in. */
  readonly ready: Promise<void>
  get(ref: Ref): T | undefined
  values(): Iterable<T>
  stop(): void
}

const sleep = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds).unref())
const slot = (ref: Ref) => `${ref.namespace}/${ref.name}`
const refOf = ({ metadata }: Resource): Ref => ({ namespace: metadata.namespace ?? '', name: metadata.name ?? '' })

export function startInformer<T>(options: InformerOptions<T>): Informer<T> {
  const { resources, kind, keep, changed = () => {}, failed = () => {}, wait = sleep } = options
  const known = new Map<string, { ref: Ref; value: T }>()
  let current: Watch | undefined
  let stopped = false
  let listed: () => void = () => {}
  const ready = new Promise<void>(resolve => {
    listed = resolve
  })

  const set = (object: Resource) => {
    const ref = refOf(object)
    const before = known.get(slot(ref))?.value
    const value = keep(object)
    known.set(slot(ref), { ref, value })
    changed(ref, value, before)
  }
  const drop = (ref: Ref) => {
    const before = known.get(slot(ref))?.value
    if (known.delete(slot(ref))) changed(ref, undefined, before)
  }

  const relist = async (): Promise<string> => {
    const { items, resourceVersion } = await resources.list(kind)
    const gone = new Set(known.keys())
    for (const { object } of items) {
      gone.delete(slot(refOf(object)))
      set(object)
    }
    for (const one of gone) drop(known.get(one)?.ref as Ref)
    return resourceVersion
  }

  /** Follows until the watch ends; the version to go on from, or undefined when only a new list helps. */
  const follow = async (from: string): Promise<string | undefined> => {
    let version = from
    current = await resources.watch(kind, { resourceVersion: version, allowWatchBookmarks: true })
    for (let events = await current.next(); events && !stopped; events = await current.next())
      for (const { type, document } of events) {
        if (type === 'ERROR') return undefined
        if (type === 'DELETED') drop(refOf(document.object))
        else if (type !== 'BOOKMARK') set(document.object)
        version = document.object.metadata.resourceVersion ?? version
      }
    return version
  }

  const run = async () => {
    let version: string | undefined
    for (let delay = 0; !stopped; ) {
      try {
        version ??= await relist()
        listed()
        version = await follow(version)
        delay = 0
      } catch (error) {
        if (error instanceof ApiError && error.code === 410) version = undefined
        failed(error)
        delay = Math.min(delay * 2 || 100, 10_000)
        await wait(delay)
      }
    }
  }
  void run()

  return {
    ready,
    get: ref => known.get(slot(ref))?.value,
    *values() {
      for (const { value } of known.values()) yield value
    },
    stop() {
      stopped = true
      current?.stop()
      listed()
    },
  }
}
