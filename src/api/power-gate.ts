// The seam between the registry and the gate for power (D60): the registry calls it for every write, src/admission implements it.

import type { Kind, Tools } from './kind.ts'
import type { Resource } from './object.ts'

/** A write to be judged. `old` is undefined for a create. */
export type GatedWrite = {
  readonly kind: Kind
  readonly next: Resource
  readonly old: Resource | undefined
  readonly tools: Tools
}

export interface Gate {
  /** Throws where the write gives away what its caller does not hold. Answers the object with its references pinned (D61). */
  admit(write: GatedWrite): Promise<Resource>
  /** Throws where the caller may not delete the object. */
  release(kind: Kind, old: Resource, tools: Tools): void
}
