// Defines the admission of a kind: the checks and side effects of its writes that need more than the object itself.

import type { Caller } from './caller.ts'
import type { Kind, KindOf } from './kind.ts'
import type { Json, JsonObject, Ref, Resource } from './object.ts'
import type { List, ListOptions, Watch, WatchOptions } from './resources.ts'

/** The request that a write belongs to. */
export type RequestContext = {
  readonly caller: Caller
  readonly dryRun: boolean
  /** Sends a warning with the response. */
  readonly warn: (text: string) => void
  /** Dotted paths of fields that the caller may not see and that this write sets (D5). */
  readonly written: readonly string[]
}

/** Adds fields that only the response to this write shows (D13). */
export type Shown = (object: Resource) => Resource

/** `companions` and `preconditions`: because of what the caller sent, in addition to those of the change. */
export type Admitted<O = Resource> = {
  readonly object: O
  readonly shown?: Shown | undefined
  /** Objects to store in the same commit. */
  readonly companions?: readonly Companion[] | undefined
  /** As those of an admission. Called before each attempt to commit. */
  readonly preconditions?: (() => readonly Precondition[]) | undefined
}

export type Admission<O = Resource> = {
  /** Rejects the write by throwing, or returns the object to store. Runs after validation and the gate. */
  readonly admit?: (next: O, old: O | undefined, request: RequestContext) => Promise<Admitted<O>>
  /**
   * Sets the status that is known with the write, so that it needs no second one. Runs last, with the new generation, but not
   * for writes of /status. Must not change the status of an unchanged object.
   */
  readonly observe?: (next: O, old: O | undefined) => O
  /**
   * Objects to store in the same commit because of a change. At most one of each kind, none of this kind. `old` is undefined for
   * a new object, `next` after a deletion.
   */
  readonly companions?: (old: O | undefined, next: O | undefined) => readonly Companion[]
  /**
   * Objects on which the change depends: the commit fails if one of them is created, changed or deleted after this call. The
   * server then calls again. Rejects the write by throwing.
   */
  readonly preconditions?: (old: O | undefined, next: O | undefined) => readonly Precondition[]
  /** For kinds that are not stored: the response to a create. */
  readonly answer?: (next: O, request: RequestContext) => Promise<O>
  /** For kinds that are not stored but can be read: all objects. */
  readonly collect?: () => readonly O[]
  /** The same, for a kind with too many objects to collect: one page. `only` is set if the caller may not list the whole kind. */
  readonly list?: (options: ListOptions, caller: Caller) => Promise<List>
  readonly watch?: (options: WatchOptions, caller: Caller) => Watch
  /** Handlers of the subresources that the kind declares, by name. */
  readonly subresources?: { readonly [name: string]: SubresourceHandler<O> }
  /** Watches of the subresources that can be watched, by name. */
  readonly subresourceWatches?: { readonly [name: string]: (object: O) => Watch }
}

/** The admissions of a server. A kind without an entry needs none. */
export type Admissions = ReadonlyMap<Kind, Admission>

/** Ties an admission to its kind. The compiler checks that both are about the same objects. */
export const forKind = <O extends Resource<unknown, unknown>>(
  kind: KindOf<O>,
  admission: Admission<O>,
): readonly [Kind, Admission] => [kind, admission as unknown as Admission]

/** An object of another kind to store with a change. An object without a name gets one with the prefix of its kind. */
export type Companion = {
  readonly kind: Kind
  readonly object: JsonObject
  /**
   * The object to write if the name is taken; undefined: none. With the uid of the stored object it is an update,
   * without one it replaces that object. Absent: the name must be free.
   */
  readonly merge?: (stored: Resource) => JsonObject | undefined
  /** If `most` objects have this label, `instead` is written in place of a new object. */
  readonly limit?: {
    readonly label: string
    readonly value: string
    readonly max: number
    readonly instead: Companion
  }
}

/** An object that may be absent. */
export type Precondition = { readonly kind: Kind; readonly ref: Ref }

/** A `get` returns something about the object; a `create` may change it. */
export type SubresourceHandler<O = Resource> = (
  object: O,
  input: SubresourceInput,
  request: RequestContext,
) => Promise<SubresourceResult>

/** `body` of a create; `part` of a get, if the path names one. */
type SubresourceInput = { readonly body?: Json | undefined; readonly part?: string | undefined }

/** `object`: what to store, if it changes. `answer`: the response, in place of the stored object. */
export type SubresourceResult = { readonly object?: Resource; readonly shown?: Shown; readonly answer?: Resource }
