// Defines what an opened engine provides: the store, last-used times, and what replicas share.

import type { Buffer } from 'node:buffer'
import type { Activity } from './last-used.ts'
import type { Store } from './store.ts'

/** Called once with the reason when writes start to fail, and with undefined when they work again. */
export type ReportFailure = (failure: string | undefined) => void

export type Storage = {
  readonly store: Store
  readonly activity: Activity
  /** Whether no object is stored. */
  readonly isEmpty: boolean
  /** The store of the controllers. Its commits fail with 'notLeader' while another replica runs them. */
  readonly controllerStore: Store
  /** Runs the controllers: from now on, or while this replica is the leader. */
  lead(start: () => Work): Work
  /** Whether this replica runs the controllers. */
  isLeader(): boolean
  /** Records that all replicas share; absent: there are no other replicas. */
  readonly records?: SharedRecords | undefined
  /** The other replicas; absent: there are none. */
  readonly replicas?: Replicas | undefined
  close(): Promise<void>
}

/** Work of the leader. */
export type Work = { stop(): Promise<void> }

/** How a replica presents itself to the others. */
export type ReplicaRecord = {
  /** Stays the same as long as its data directory exists. */
  readonly id: string
  /** Its https URL for the others; empty: it has none. */
  readonly url: string
  readonly version: string
  /** RFC 3339. */
  readonly startedAt: string
}

/** A replica that does not run has stopped in the last 30 days. */
export type Replica = ReplicaRecord & { readonly isRunning: boolean }

export type Replicas = {
  /** Makes this replica known to the others. Throws if another one has the same id. */
  register(self: ReplicaRecord): Promise<void>
  /** All replicas but this one, by id. */
  others(): readonly Replica[]
  onChange(listener: () => void): void
}

/** Small values beside the objects. */
export type SharedRecords = {
  read(name: RecordName): Promise<Buffer | undefined>
  /** Stores a value unless there is one. Resolves with the stored value. */
  claim(name: RecordName, value: Buffer): Promise<Buffer>
  replace(name: RecordName, value: Buffer): Promise<void>
}
export type RecordName = 'master-key' | 'serving-ca'

/** How to reach etcd, with the contents of the files. */
export type EtcdSettings = {
  readonly endpoints: readonly string[]
  readonly prefix: string
  readonly tls?: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer } | undefined
  readonly allowUnsafeVersion?: boolean
}

export type StorageOptions = {
  /** One of `engineNames`. */
  readonly engine: string
  /** The directory of the SQLite engine; it must exist. */
  readonly directory: string
  readonly now: () => number
  readonly reportFailure?: ReportFailure
  /** Called once if this replica can continue only after a restart. It no longer serves reads. */
  readonly lost?: ((reason: string) => void) | undefined
  /** Required for the engine etcd. */
  readonly etcd?: EtcdSettings | undefined
}
