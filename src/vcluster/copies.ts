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
  readonly changed: (ref: Ref, now: T | undefined, before: T | undefined) => void
  readonly failed: (error: unknown) => void
}

export interface Copies<T> {
  readonly ready: Promise<void>
  get(ref: Ref): T | undefined
  values(): Iterable<T>
  /** What a write of our own left; undefined: nothing. */
  wrote(ref: Ref, object: T | undefined): void
  stop(): void
}

const slotOf = ({ namespace, name }: Ref) => `${namespace}/${name}`

export function followCopies<T extends Resource>(options: CopiesOptions<T>): Copies<T> {
  const { resources, kind, namespaces, keep, changed, failed } = options
  /** `seen` is what the informer had when it was written: once that moves, the informer knows better. */
  const written = new Map<string, { readonly seen: string | undefined; readonly object: T | undefined }>()
  const informers = namespaces.map(namespace =>
    startInformer<T>({
      resources: within(resources, namespace),
      kind,
      keep: object => keep(object as T),
      changed: (ref, now, before) => {
        written.delete(slotOf(ref))
        changed(ref, now, before)
      },
      failed,
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
    wrote(ref, object) {
      written.set(slotOf(ref), { seen: seen(ref)?.metadata.resourceVersion, object: object && keep(object) })
    },
    stop() {
      for (const informer of informers) informer.stop()
    },
  }
}
