// What is known of one kind on one side: what the informer follows, and, until it has caught up, what was just written.

import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { startInformer } from '../reconcile/informer.ts'
import { within } from './scoped.ts'

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

type Written<T> = { readonly ref: Ref; readonly seen: string | undefined; readonly object: T | undefined }

/** Tells of every watch but the first: a server that lets itself be watched again is back, even with nothing to tell. */
function answering(resources: Resources, isBack: () => void): Resources {
  let isFirst = true
  return {
    ...resources,
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
  /** A list is the whole truth: what it does not have is not there, whatever was written before. */
  const listed = (namespace: string) => {
    underWay.clear()
    for (const [slot, { ref, object }] of written) {
      if (namespace && ref.namespace !== namespace) continue
      written.delete(slot)
      changed(ref, seen(ref), object)
    }
  }
  const informers = namespaces.map(namespace =>
    startInformer<T>({
      resources: answering(within(resources, namespace), isBack),
      kind,
      keep: object => keep(object as T),
      changed: (ref, now, before) => {
        const own = written.get(slotOf(ref))
        written.delete(slotOf(ref))
        underWay.delete(slotOf(ref))
        // An echo of our own write is no news.
        if (!own || own.object?.metadata.resourceVersion !== now?.metadata.resourceVersion) changed(ref, now, before)
      },
      failed,
      listed: () => listed(namespace),
    }),
  )
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
          written.set(slot, { ref, seen: seen(ref)?.metadata.resourceVersion, object: object && keep(object) })
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
      for (const informer of informers) informer.stop()
    },
  }
}
