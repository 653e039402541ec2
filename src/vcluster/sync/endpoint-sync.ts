// Defines a running sync of one kind, as endpoints-controller.ts starts it.

import type { Ref } from '../../api/object.ts'
import type { SyncedObject } from './kinds.ts'
import type { State } from './plan.ts'

type Failure = {
  readonly kind: string
  readonly name: string
  readonly error: unknown
  readonly attempts: number
}

export interface EndpointSync {
  /** Resolves when both sides are listed. */
  readonly ready: Promise<void>
  /** Resolves when every observed change is synced or has failed. */
  settled(): Promise<void>
  /** Objects whose last attempt failed. */
  failures(): readonly Failure[]
  states(): ReadonlyMap<State, number>
  /** Reconciles all objects again, after a change that affects them all. */
  resyncAll(): void
  readonly depth: number
  /** Cached objects of both sides, once ready. */
  readonly known: {
    virtual(ref: Ref): SyncedObject | undefined
    host(): Iterable<SyncedObject>
  }
  stop(): Promise<void>
}
