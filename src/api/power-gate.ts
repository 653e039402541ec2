// Defines the permission gate: the registry calls it for every write, and src/admission implements it (D60).

import type { RequestContext } from './admission.ts'
import type { Caller } from './caller.ts'
import type { Kind } from './kind.ts'
import type { Resource } from './object.ts'

/** A write to check. `old` is undefined for a create. */
export type GatedWrite = {
  readonly kind: Kind
  readonly next: Resource
  readonly old: Resource | undefined
  readonly request: RequestContext
}

export interface Gate {
  /** The name of the team that a text refers to by name or username; otherwise the text (D23). */
  teamNamed(text: string): string
  /** Replaces usernames of teams by names, with a warning. Runs before validation. */
  withTeamNames(write: GatedWrite): Resource
  /**
   * Throws if the write grants permissions that its caller does not have. Returns the object with pinned references
   * (D61).
   */
  admit(write: GatedWrite): Promise<Resource>
  /** Throws, or rejects, if the caller may not delete the object; undefined: nothing to wait for. */
  checkDelete(kind: Kind, old: Resource, caller: Caller): Promise<void> | undefined
}
