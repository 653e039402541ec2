// Defines the dependencies of every verb: the store, the sealer, admission, and the caller.

import type { Admissions, RequestContext } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref } from '../api/object.ts'
import type { Decision, PermissionVersions, Question } from '../api/permissions.ts'
import type { Gate } from '../api/power-gate.ts'
import type { WriteCheck, WriteOptions } from '../api/resources.ts'
import type { Key, Store } from '../storage/store.ts'
import type { PendingWrites } from './pending-writes.ts'
import type { ShownActivity } from './shown-activity.ts'
import type { VisibilityIndex } from './visibility-index.ts'

/** Encrypts and decrypts sealed fields. */
export type Sealer = {
  readonly seal: (location: FieldLocation, plaintext: string | Uint8Array) => string
  readonly open: (location: FieldLocation, sealed: string) => Buffer
}
export type FieldLocation = {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly path: string
}

export type Context = {
  readonly store: Store
  readonly sealer: Sealer
  readonly kinds: readonly Kind[]
  /** Finds the objects for filtered lists and watches. */
  readonly visibility: VisibilityIndex
  /** The admission of each kind. */
  readonly admissions: Admissions
  /** Checks the permissions that a write grants (D60). */
  readonly gate: Gate
  readonly caller: Caller
  /** Called before each attempt to write. Absent for the server itself. */
  readonly check?: WriteCheck | undefined
  readonly permissionVersions: PermissionVersions
  readonly now: () => number
  readonly uuid: () => string
  readonly random: (bytes: number) => Uint8Array
  /** Shared by all callers. */
  readonly pending: PendingWrites
  /** Keys of pending commits, by the label that limits their number (companion-writes.ts). Shared by all callers. */
  readonly reserved: Map<string, Set<Key>>
  /** The last writer that waits for its turn, by object (retry-conflicts.ts). Shared by all callers. */
  readonly turns: Map<string, Promise<void>>
  /** Reads return stored objects with hidden fields and without decryption. For the server itself only. */
  readonly isInternal: boolean
  /** Provides `lastActivity`. Shared by all callers. */
  readonly activity: ShownActivity
  /** Last activity of an object, in milliseconds (D19). A dry run shows the one that its caller saw last. */
  readonly lastActivity: (uid: string) => number | undefined
  readonly authorize: (caller: Caller, question: Question) => Decision
}

export const requestOf = ({ caller }: Context, { dryRun = false, warn = () => {} }: WriteOptions): RequestContext => ({
  caller,
  dryRun,
  warn,
  written: [],
})

export const keyOf = (kind: Kind, ref: Ref): Key => ({ bucket: kind.id, namespace: ref.namespace, name: ref.name })

/** An empty namespace means `default` (SPEC §2.2). Kinds without namespaces have none. */
export const spaceOf = (kind: Kind, namespace: string) => (kind.namespaced ? namespace || 'default' : '')
export const refOf = (kind: Kind, ref: Ref): Ref => ({ namespace: spaceOf(kind, ref.namespace), name: ref.name })
