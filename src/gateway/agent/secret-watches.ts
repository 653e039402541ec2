// Follows the agent's Secrets, with one watch for each namespace that has or gets some.

import type { Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { Secret } from '../../reconcile/kubernetes-kinds.ts'
import type { NamespaceRecord } from './namespace-record.ts'
import { followOwnObjects, type OwnObjects } from './own-objects.ts'
import type { Actual } from './wanted-object.ts'

export interface SecretWatches {
  get(ref: Ref): Actual | undefined
  /** `ready`: the agent knows its Secrets in this namespace. Otherwise the error, or undefined if they are not listed yet. */
  state(namespace: string): 'ready' | Error | undefined
  /** Watches these namespaces and those that still have Secrets. `isIdle`: nothing is being written, so it may forget empty ones. */
  watch(wanted: ReadonlySet<string>, isIdle: boolean): void
  /** The agent knows that it has no Secret in any namespace. */
  readonly isEmpty: boolean
  /** The number of Secrets. */
  readonly size: number
  refs(): Iterable<Ref>
  stop(): void
}

export type SecretWatchesOptions = {
  readonly resources: Resources
  readonly record: NamespaceRecord
  readonly uid: string
  readonly changed: (key: string) => void
  /** Called when the state of a namespace changes. */
  readonly moved: (namespace: string) => void
  readonly failed: (error: Error) => void
  /** Ends early with the signal. */
  readonly wait: (milliseconds: number) => Promise<void>
  /** After it aborts, every request fails at once, and so would every retry. */
  readonly signal: AbortSignal
}

const retryAfter = 2000

type Request = { readonly wanted: ReadonlySet<string>; readonly isIdle: boolean }

export function openSecretWatches(options: SecretWatchesOptions): SecretWatches {
  const { resources, record, uid, changed, moved, failed, wait, signal } = options
  const watched = new Map<string, OwnObjects>()
  let recorded: ReadonlySet<string> | undefined
  let recordError: Error | undefined
  let request: Request | undefined
  let isBusy = false
  let isStopped = false

  const start = (namespace: string) => {
    const own = { resources, kind: Secret, namespace, uid, changed, failed, moved: () => moved(namespace) }
    watched.set(namespace, followOwnObjects(own))
  }
  const isEmpty = (namespace: string) => watched.get(namespace)?.isEmpty === true

  /** A namespace is recorded before the first write in it, and forgotten after its last Secret. */
  const settle = async ({ wanted, isIdle }: Request) => {
    recorded ??= await record.read()
    const next = wanted.union(new Set([...recorded].filter(one => !(isIdle && isEmpty(one)))))
    if (isStopped) return
    // Before the record changes: without its watch, nothing is written to a namespace.
    for (const [namespace, own] of watched)
      if (!next.has(namespace)) {
        own.stop()
        watched.delete(namespace)
      }
    if (next.size !== recorded.size || !next.isSubsetOf(recorded)) {
      await record.write(next)
      recorded = next
    }
    if (isStopped) return
    for (const namespace of next) if (!watched.has(namespace)) start(namespace)
  }

  const run = async () => {
    isBusy = true
    for (let current = request; current && !isStopped && !signal.aborted; current = request) {
      request = undefined
      try {
        await settle(current)
        recordError = undefined
      } catch (error) {
        recordError = error as Error
        recorded = undefined
        failed(recordError)
        for (const namespace of current.wanted) if (!watched.has(namespace)) moved(namespace)
        await wait(retryAfter)
        request ??= current
      }
    }
    isBusy = false
  }

  return {
    get: ref => watched.get(ref.namespace)?.get(ref),
    state(namespace) {
      const own = watched.get(namespace)
      return own ? own.state() : recordError
    },
    watch(wanted, isIdle) {
      request = { wanted, isIdle }
      if (!isBusy) void run()
    },
    get isEmpty() {
      return !isBusy && recorded !== undefined && [...recorded].every(isEmpty)
    },
    get size() {
      let count = 0
      for (const own of watched.values()) count += own.count
      return count
    },
    *refs() {
      for (const own of watched.values()) yield* own.refs()
    },
    stop() {
      isStopped = true
      for (const own of watched.values()) own.stop()
    },
  }
}
