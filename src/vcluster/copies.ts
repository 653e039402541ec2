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
  /** The other side answers again after it did not. */
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

export function followCopies<T extends Resource>(options: CopiesOptions<T>): Copies<T> {
  const { resources, kind, namespaces, keep, changed, failed, isBack } = options
  let isAway = false
  /** `seen` is what the informer had when it was written: once that moves, the informer knows better. */
  const written = new Map<string, { readonly seen: string | undefined; readonly object: T | undefined }>()
  /** Writes whose answer is awaited, while the informer has told nothing new. */
  const underWay = new Map<string, object>()
  const informers = namespaces.map(namespace =>
    startInformer<T>({
      resources: within(resources, namespace),
      kind,
      keep: object => keep(object as T),
      changed: (ref, now, before) => {
        const own = written.get(slotOf(ref))
        written.delete(slotOf(ref))
        underWay.delete(slotOf(ref))
        // An echo of our own write is no news.
        if (!own || own.object?.metadata.resourceVersion !== now?.metadata.resourceVersion) changed(ref, now, before)
      },
      failed: error => {
        isAway = true
        failed(error)
      },
      heard: () => {
        if (isAway) isBack()
        isAway = false
      },
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
          written.set(slot, { seen: seen(ref)?.metadata.resourceVersion, object: object && keep(object) })
        return object
      } finally {
        if (underWay.get(slot) === token) underWay.delete(slot)
      }
    },
    stop() {
      for (const informer of informers) informer.stop()
    },
  }
}
