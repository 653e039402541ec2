// Describes a kind that the syncer copies to the host: its Service, its addresses and its references.

import type { Kind } from '../../api/kind.ts'
import type { SyncFailure } from './condition.ts'
import type { Vcluster } from './host-ref.ts'
import type { ObjectReference, SyncedObject } from './kinds.ts'

export type SyncedKind = {
  readonly kind: Kind
  /** Its key below `sync.toHost`. */
  readonly setting: 'endpoints' | 'endpointSlices'
  /** Whether the object of a Service always has the name of the Service. */
  readonly hasNameOfService: boolean
  /** The Service that the object belongs to, in the same namespace. */
  readonly serviceOf: (object: SyncedObject) => string | undefined
  /** Whether a controller of the virtual cluster manages the object. The host has the same controller. */
  readonly isManaged: (object: SyncedObject) => boolean
  /** Why the object can never be synced. */
  readonly refusal: (object: SyncedObject) => SyncFailure | undefined
  /** Everything except metadata. `target` translates a reference. */
  readonly content: (object: SyncedObject, target?: (reference: ObjectReference) => ObjectReference) => Content
  /** Labels of the host object that patches cannot change. */
  readonly labels: (virtual: SyncedObject, vcluster: Vcluster) => { readonly [key: string]: string }
  /** The keys of `labels`. */
  readonly labelKeys: readonly string[]
  readonly targets: (object: SyncedObject) => readonly ObjectReference[]
  /** All addresses, with their path. */
  readonly addresses: (object: SyncedObject) => Iterable<readonly [path: string, address: string]>
  readonly isSameContent: (one: SyncedObject, other: SyncedObject) => boolean
  /** Whether the host must delete its object and create it again, because a field cannot change. */
  readonly needsNewObject: (wanted: SyncedObject, current: SyncedObject) => boolean
}

type Content = Omit<SyncedObject, 'apiVersion' | 'kind' | 'metadata' | 'spec' | 'status'>
