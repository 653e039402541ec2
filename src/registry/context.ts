// What every verb is handed: the store, the sealer, the tools, and who asks. registry.ts makes it, one a caller.

import type { Admissions } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import type { Kind, Tools } from '../api/kind.ts'
import type { Ref } from '../api/object.ts'
import type { Gate } from '../api/power-gate.ts'
import type { TargetCheck } from '../api/resources.ts'
import type { Key, Store } from '../storage/store.ts'
import type { VisibilityIndex } from './visibility-index.ts'

/** What of `sealed.ts` the registry needs. */
export type Sealer = {
  readonly seal: (place: Place, plaintext: string | Uint8Array) => string
  readonly open: (place: Place, sealed: string) => Buffer
}
export type Place = {
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
  /** By which filtered lists and watches find their objects. */
  readonly visibility: VisibilityIndex
  /** What kinds need beyond their own object. */
  readonly admissions: Admissions
  /** Checks what every write grants (D60). */
  readonly gate: Gate
  readonly caller: Caller
  /** Called with the stored object before each attempt to change it; throws where its caller may not. */
  readonly checkTarget?: TargetCheck
  readonly now: () => number
  readonly uuid: () => string
  readonly random: (bytes: number) => Uint8Array
  /** Keys whose commit is under way, by the label that limits their number (companion-writes.ts). One for all callers. */
  readonly reserved: Map<string, Set<Key>>
  /** Whether reads give objects as they lie there, hidden fields included and sealed ones unopened: for the house's own rooms alone. */
  readonly inside: boolean
  /** Last activity of an object, in milliseconds (D19). */
  readonly lastActivity: (uid: string) => number | undefined
  readonly tools: (options: { readonly dryRun: boolean; readonly warn: (text: string) => void }) => Tools
}

export const keyOf = (kind: Kind, ref: Ref): Key => ({ bucket: kind.id, namespace: ref.namespace, name: ref.name })

/** SPEC §2.2: an empty namespace is `default`; kinds without namespaces have none. */
export const spaceOf = (kind: Kind, namespace: string) => (kind.namespaced ? namespace || 'default' : '')
export const refOf = (kind: Kind, ref: Ref): Ref => ({ namespace: spaceOf(kind, ref.namespace), name: ref.name })
