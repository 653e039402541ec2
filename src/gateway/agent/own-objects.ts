// Follows the objects of one kind and namespace that carry the agent's labels.

import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { startInformer } from '../../reconcile/informer.ts'
import { scopedTo } from '../../reconcile/scoped-client.ts'
import { selectorOf } from './marks.ts'
import { type Actual, actualOf, keyOf } from './wanted-object.ts'

export type OwnObjectsOptions = {
  readonly resources: Resources
  readonly kind: Kind
  /** '': all. */
  readonly namespace: string
  readonly uid: string
  /** Called for every change of an object, after the first list. */
  readonly changed: (key: string) => void
  /** Called when the state changes. */
  readonly moved: () => void
  readonly failed: (error: Error) => void
}

export interface OwnObjects {
  /** `ready`: the agent knows the objects. Otherwise the error, or undefined if they are not listed yet. */
  state(): 'ready' | Error | undefined
  /** The last error, also if the objects were listed before. */
  readonly error: Error | undefined
  readonly count: number
  /** The agent knows that there is none. */
  readonly isEmpty: boolean
  get(ref: Ref): Actual | undefined
  refs(): Iterable<Ref>
  stop(): void
}

export function followOwnObjects(options: OwnObjectsOptions): OwnObjects {
  const { resources, kind, namespace, uid, changed, moved, failed } = options
  let isListed = false
  let error: Error | undefined
  let count = 0
  /** A list is complete after all its pages. */
  const early: string[] = []
  const { get, refs, stop } = startInformer<Actual>({
    resources: scopedTo(resources, namespace, selectorOf(uid)),
    kind,
    keep: object => actualOf(object, uid),
    // A resumed watch says nothing until the next change, and the error would stay.
    listsAfterFailure: true,
    changed: (ref, now, before) => {
      count += Number(now !== undefined) - Number(before !== undefined)
      const key = keyOf({ kind, ref })
      if (isListed) changed(key)
      else early.push(key)
    },
    contacted: () => {
      if (isListed && error === undefined) return
      isListed = true
      error = undefined
      moved()
      for (const key of early.splice(0)) changed(key)
    },
    failed: thrown => {
      const isNew = error === undefined
      error = thrown as Error
      failed(error)
      if (isNew) moved()
    },
  })
  return {
    state: () => (isListed ? 'ready' : error),
    get error() {
      return error
    },
    get count() {
      return count
    },
    get isEmpty() {
      return isListed && error === undefined && count === 0
    },
    get,
    refs,
    stop,
  }
}
