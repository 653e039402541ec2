// Informer cache that also returns our own writes until the watch delivers them.

import { isNotFound } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { startInformer } from '../../reconcile/informer.ts'
import { scopedTo } from '../../reconcile/scoped-client.ts'

export type CacheOptions<T extends Resource> = {
  readonly resources: Resources
  readonly kind: Kind
  /** [''] means all namespaces. */
  readonly namespaces: readonly string[]
  /** Reduces an object before it is cached. */
  readonly keep: (object: T) => T
  /** Called for changes by others. */
  readonly changed: (ref: Ref, now: T | undefined, before: T | undefined) => void
  readonly failed: (error: unknown) => void
  /** Called when the watch works again after a failure. */
  readonly onReconnect: () => void
}

export interface WriteThroughCache<T> {
  readonly ready: Promise<void>
  get(ref: Ref): T | undefined
  values(): Iterable<T>
  /** Performs a write and caches its result; undefined for a deletion. */
  write(ref: Ref, run: () => Promise<T | undefined>): Promise<T | undefined>
  stop(): void
}

const slotOf = ({ namespace, name }: Ref) => `${namespace}/${name}`

type Written<T> = {
  readonly ref: Ref
  readonly seen: string | undefined
  readonly object: T | undefined
  /** Order among list requests and write responses. */
  readonly order: number
}

/** Calls `onList` before every list request and `onReconnect` for every watch after the first. */
function observedClient(resources: Resources, onList: () => void, onReconnect: () => void): Resources {
  let isFirst = true
  return {
    ...resources,
    list: (kind, options) => {
      onList()
      return resources.list(kind, options)
    },
    watch: async (kind, options) => {
      const watch = await resources.watch(kind, options)
      if (!isFirst) onReconnect()
      isFirst = false
      return watch
    },
  }
}

export function openWriteThroughCache<T extends Resource>(options: CacheOptions<T>): WriteThroughCache<T> {
  const { resources, kind, namespaces, keep, changed, failed, onReconnect } = options
  /** `seen` is the informer's version at the time of the write. Once it changes, the informer is newer. */
  const written = new Map<string, Written<T>>()
  /** Pending writes for which the informer has delivered nothing newer. */
  const pending = new Map<string, object>()
  let lastOrder = 0
  let isStopped = false
  /** A list contains every write before its request. Later writes may be missing in it. */
  const listed = (namespace: string, requestedAt: number) => {
    const isOf = (other: string) => !namespace || other === namespace
    for (const slot of pending.keys()) if (isOf(slot.slice(0, slot.indexOf('/')))) pending.delete(slot)
    for (const [slot, own] of written) {
      if (!isOf(own.ref.namespace)) continue
      if (own.object && own.order > requestedAt) void verify(slot, own)
      else forget(slot, own)
    }
  }
  const forget = (slot: string, own: Written<T>) => {
    if (written.get(slot) !== own) return
    written.delete(slot)
    changed(own.ref, seen(own.ref), own.object)
  }
  /** The object is either newer than the list or already deleted again: only the server knows. */
  const verify = async (slot: string, own: Written<T>): Promise<void> => {
    for (let delay = 100; !isStopped && written.get(slot) === own; delay = Math.min(delay * 2, 10_000)) {
      try {
        await resources.get(kind, own.ref)
        return
      } catch (error) {
        if (isNotFound(error)) return forget(slot, own)
        failed(error)
      }
      await new Promise<void>(resolve => setTimeout(resolve, delay).unref())
    }
  }
  const follow = (namespace: string) => {
    /** Order of the pending list request. The informer delivers nothing else meanwhile. */
    let requestedAt: number | undefined
    const onList = () => {
      requestedAt = ++lastOrder
    }
    return startInformer<T>({
      resources: observedClient(scopedTo(resources, namespace), onList, onReconnect),
      kind,
      keep: object => keep(object as T),
      changed: (ref, now, before) => {
        const slot = slotOf(ref)
        const own = written.get(slot)
        if (own?.object && !now && requestedAt !== undefined && own.order > requestedAt)
          return void written.set(slot, { ...own, seen: undefined }) // `listed` verifies it
        written.delete(slot)
        pending.delete(slot)
        // Ignore the echo of our own write.
        if (!own || own.object?.metadata.resourceVersion !== now?.metadata.resourceVersion) changed(ref, now, before)
      },
      failed,
      listed: () => {
        listed(namespace, requestedAt ?? lastOrder)
        requestedAt = undefined
      },
    })
  }
  const informers = namespaces.map(follow)
  const seen = (ref: Ref): T | undefined => {
    for (const informer of informers) {
      const found = informer.get(ref)
      if (found) return found
    }
    return undefined
  }
  return {
    ready: Promise.all(informers.map(informer => informer.ready)).then(() => {}),
    get(ref) {
      const known = seen(ref)
      const own = written.get(slotOf(ref))
      return own && own.seen === known?.metadata.resourceVersion ? own.object : known
    },
    *values() {
      for (const informer of informers) yield* informer.values()
    },
    async write(ref, run) {
      const [slot, token] = [slotOf(ref), {}]
      pending.set(slot, token)
      try {
        const object = await run()
        // The watch may be faster than the response and already have a newer version.
        if (pending.get(slot) === token)
          written.set(slot, {
            ...{ ref, seen: seen(ref)?.metadata.resourceVersion },
            ...{ object: object && keep(object), order: ++lastOrder },
          })
        return object
      } catch (error) {
        // The write may have succeeded anyway, or failed because our cached object is outdated.
        written.delete(slot)
        throw error
      } finally {
        if (pending.get(slot) === token) pending.delete(slot)
      }
    },
    stop() {
      isStopped = true
      for (const informer of informers) informer.stop()
    },
  }
}
