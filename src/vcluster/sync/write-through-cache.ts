// What is known of one kind on one side: what the informer follows, and, until it has caught up, what was just written.

import type { Kind } from '../../api/kind.ts'
import type { Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { startInformer } from '../../reconcile/informer.ts'
import { isNotFound } from './api-errors.ts'
import { within } from './scoped-client.ts'

export type CopiesOptions<T extends Resource> = {
  readonly resources: Resources
  readonly kind: Kind
  /** [''] is all of them. */
  readonly namespaces: readonly string[]
  /** What to keep of an object: as little as is needed. */
  readonly keep: (object: T) => T
  /** Told of what others changed. */
  readonly changed: (ref: Ref, now: T | undefined, before: T | undefined) => void
  readonly failed: (error: unknown) => void
  /** The other side can be followed again after it could not. */
  readonly isBack: () => void
}

export interface Copies<T> {
  readonly ready: Promise<void>
  get(ref: Ref): T | undefined
  values(): Iterable<T>
  /** Does a write of our own, and remembers what it left; undefined: nothing. */
  write(ref: Ref, run: () => Promise<T | undefined>): Promise<T | undefined>
  stop(): void
}

const slotOf = ({ namespace, name }: Ref) => `${namespace}/${name}`

type Written<T> = {
  readonly ref: Ref
  readonly seen: string | undefined
  readonly object: T | undefined
  /** Its place in the order of lists asked for and writes answered. */
  readonly place: number
}

/**
 * Tells of every list before it is asked for, and of every watch but the first: a server that lets itself be watched again
 * is back, even with nothing to tell.
 */
function answering(resources: Resources, asks: () => void, isBack: () => void): Resources {
  let isFirst = true
  return {
    ...resources,
    list: (kind, options) => {
      asks()
      return resources.list(kind, options)
    },
    watch: async (kind, options) => {
      const watch = await resources.watch(kind, options)
      if (!isFirst) isBack()
      isFirst = false
      return watch
    },
  }
}

export function followCopies<T extends Resource>(options: CopiesOptions<T>): Copies<T> {
  const { resources, kind, namespaces, keep, changed, failed, isBack } = options
  /** `seen` is what the informer had when it was written: once that moves, the informer knows better. */
  const written = new Map<string, Written<T>>()
  /** Writes whose answer is awaited, while the informer has told nothing new. */
  const underWay = new Map<string, object>()
  let places = 0
  let isStopped = false
  /** A list is the whole truth of what was written before it was asked for; what was written since may be missing in it. */
  const listed = (namespace: string, asked: number) => {
    const isOf = (other: string) => !namespace || other === namespace
    for (const slot of underWay.keys()) if (isOf(slot.slice(0, slot.indexOf('/')))) underWay.delete(slot)
    for (const [slot, own] of written) {
      if (!isOf(own.ref.namespace)) continue
      if (own.object && own.place > asked) void ask(slot, own)
      else forget(slot, own)
    }
  }
  const forget = (slot: string, own: Written<T>) => {
    if (written.get(slot) !== own) return
    written.delete(slot)
    changed(own.ref, seen(own.ref), own.object)
  }
  /** Made after the list, which the watch is about to tell, or gone before it, which nobody will: only the server knows. */
  const ask = async (slot: string, own: Written<T>): Promise<void> => {
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
    /** The place of the list that is under way; nothing else is told meanwhile. */
    let asked: number | undefined
    const asks = () => {
      asked = ++places
    }
    return startInformer<T>({
      resources: answering(within(resources, namespace), asks, isBack),
      kind,
      keep: object => keep(object as T),
      changed: (ref, now, before) => {
        const slot = slotOf(ref)
        const own = written.get(slot)
        if (own?.object && !now && asked !== undefined && own.place > asked)
          return void written.set(slot, { ...own, seen: undefined }) // `listed` looks into it
        written.delete(slot)
        underWay.delete(slot)
        // An echo of our own write is no news.
        if (!own || own.object?.metadata.resourceVersion !== now?.metadata.resourceVersion) changed(ref, now, before)
      },
      failed,
      listed: () => {
        listed(namespace, asked ?? places)
        asked = undefined
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
      underWay.set(slot, token)
      try {
        const object = await run()
        // The informer may be faster than the answer; it may know even more by now.
        if (underWay.get(slot) === token)
          written.set(slot, {
            ...{ ref, seen: seen(ref)?.metadata.resourceVersion },
            ...{ object: object && keep(object), place: ++places },
          })
        return object
      } catch (error) {
        // It may have gone through all the same, or been refused because what was written before is not there any more.
        written.delete(slot)
        throw error
      } finally {
        if (underWay.get(slot) === token) underWay.delete(slot)
      }
    },
    stop() {
      isStopped = true
      for (const informer of informers) informer.stop()
    },
  }
}
