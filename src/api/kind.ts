// Defines a kind: its schema, names and pure rules.
// Rules with dependencies are in the admission of the kind.

import type { Caller } from './caller.ts'
import type { FieldError } from './errors.ts'
import type { Grant, Recipient } from './grant.ts'
import type { JsonObject, Resource } from './object.ts'
import type { ObjectPermission, PermissionSubject } from './permissions.ts'
import type { Schema, Static, TSchema } from './schema.ts'

export type { ObjectPermission, PermissionSubject, Question } from './permissions.ts'

export type Verb = 'create' | 'get' | 'list' | 'watch' | 'update' | 'patch' | 'delete' | 'deletecollection'
const allVerbs: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

/** A time in milliseconds that is stored beside the objects (D19). */
type LastActivity = (id: string) => number | undefined

/** A column of `kubectl get`. The server adds Name and Age. priority > 0: shown with -o wide only. */
export type Column = {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly description: string
  readonly priority?: number
  /** For people: 3600 seconds are an hour. */
  readonly unit?: 'seconds'
  /** The server passes times that are stored separately, such as the last read (D35). */
  readonly value: (object: Resource, lastActivity?: LastActivity) => string | number | boolean | undefined
}

/** An object that existed at some time. */
export type ObjectOfEvent = {
  readonly group: string
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** Rules of a kind. All of them are pure. */
type PureRules<O extends Resource> = {
  /** Permissions that the object itself grants, such as those of its owner. */
  readonly rights?: (object: O, who: PermissionSubject) => readonly ObjectPermission[]
  /** Terms (candidates.ts) of everyone who may get a permission from `rights`. Filtered lists find objects by them. */
  readonly readers?: (object: O) => readonly string[]
  /** Sets defaults that depend on the object only. */
  readonly prepare?: (next: O, old: O | undefined) => O
  /** Sets defaults that depend on the caller, such as the owner. */
  readonly assign?: (next: O, old: O | undefined, caller: Caller) => O
  /**
   * The grants of the object. The gate rejects a write that grants permissions its caller does not have (D60). `to`: the
   * caller needs only the grants to this recipient. An object can have very many others, and may leave them out.
   */
  readonly grants?: (object: O, to?: Recipient) => readonly Grant[]
  /** Validates beyond the schema. Returns all errors. */
  readonly validate?: (next: O, old: O | undefined) => readonly FieldError[]
  /**
   * For a kind that is not stored: the object that this one is about. Callers who may not list the kind see the objects that
   * its admission allows, and those about objects that they own (D70).
   */
  readonly about?: (object: O) => ObjectOfEvent | undefined
  /** Adds data that is stored separately, such as the last activity (D19), to every response. */
  readonly join?: (object: O, lastActivity: LastActivity) => O
}

/**
 * A subresource of one object. `get` reads about it, `create` may change it. The handler is in the admission of the
 * kind.
 */
export type Subresource = {
  readonly verb: 'get' | 'create'
  /** Kind of the response, for discovery. */
  readonly kind: string
  /** Whether a get with `watch` follows it. The admission of the kind has the watch. */
  readonly isWatched?: boolean
  /** Whether a further path segment selects a part of it, as in history/3. */
  readonly hasParts?: boolean
  /** Schema of `spec` in the body of a create. The audit log shows no other field of it. */
  readonly spec?: Schema
}

type Names = {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly description: string
  readonly verbs: readonly Verb[]
  /**
   * Dotted paths. Hidden fields are never returned. Write-only fields are removed before storing. Sealed fields are
   * encrypted at rest.
   */
  readonly hidden: readonly string[]
  readonly writeOnly: readonly string[]
  readonly sealed: readonly string[]
  /** Write-only maps of text, by the path of the map that stores them as base64: `spec.stringData` to `spec.data`. */
  readonly textForms: { readonly [field: string]: string }
  /** Fields of which an object has at most one, by the path of their parent. A patch that sets one removes the others. */
  readonly alternatives: { readonly [parent: string]: readonly string[] }
  /** Fields for field selectors besides name and namespace, with the value that an absent field has. Not for sealed fields. */
  readonly selectable: { readonly [field: string]: string }
  readonly subresources: { readonly [name: string]: Subresource }
  /** Whether `/status` is served (D9). */
  readonly statusSubresource: boolean
  /** A create without a name gets a generated name with this prefix (D24). */
  readonly generateNamePrefix: string | undefined
  /** Only the owner and administrators of the kind (verb *) see and change an object. Others get a 404 (D15). */
  readonly ownerOnly: boolean
  /**
   * A partial list would be misleading: callers who may not list all objects get a 403, not the objects they may get
   * (D27).
   */
  readonly allOrNothing: boolean
  /** The gate checks every grant on every write, as Kubernetes does for roles and bindings (D60). */
  readonly checkedWhole: boolean
  /** How to validate names: as DNS subdomains, or as path segments like the RBAC kinds. */
  readonly nameRule: 'subdomain' | 'segment'
  /** The server records when somebody last read the data of an object (D35). */
  readonly keepsLastRead: boolean
  readonly stored: boolean
  /** For a kind that is not stored: its objects have an identity all the same, with the metadata rules of stored kinds and an optional name. */
  readonly hasIdentity: boolean
  readonly served: boolean
  readonly columns: readonly Column[]
  /** A valid object of the kind, for the documentation and the conformance suite. */
  readonly sample: JsonObject
}

export type Kind = Names &
  PureRules<Resource> & {
    readonly apiVersion: string
    /** `teams.management.platform.sh`: identifies the kind in the store and in messages. */
    readonly id: string
    readonly spec: Schema | undefined
    readonly status: Schema | undefined
    /** All top-level fields except metadata, including spec and status. */
    readonly fields: { readonly [name: string]: Schema }
  }

/** A kind with the type of its objects. `shape` exists for the compiler only. */
export type KindOf<O extends Resource<unknown, unknown>> = Kind & { readonly shape?: O }

/** The type of the objects of a kind. */
export type ObjectOf<K extends Kind> = K extends { readonly shape?: infer O extends Resource<unknown, unknown> }
  ? O
  : Resource

type Optional =
  | 'group'
  | 'version'
  | 'shortNames'
  | 'categories'
  | 'verbs'
  | 'hidden'
  | 'writeOnly'
  | 'sealed'
  | 'textForms'
  | 'alternatives'
  | 'selectable'
  | 'statusSubresource'
  | 'subresources'
  | 'generateNamePrefix'
  | 'nameRule'
  | 'ownerOnly'
  | 'allOrNothing'
  | 'checkedWhole'
  | 'keepsLastRead'
  | 'stored'
  | 'hasIdentity'
  | 'served'
  | 'columns'

export type Definition<S extends TSchema, T extends TSchema> = Omit<Names, Optional> &
  Partial<Pick<Names, Optional>> &
  PureRules<Resource<Static<S>, Static<T>>> & {
    readonly spec?: S
    readonly status?: T
    readonly fields?: { readonly [name: string]: TSchema }
  }

/** Creates a kind. Fields that are not set get the default of most kinds. */
export function defineKind<S extends TSchema, T extends TSchema>(
  definition: Definition<S, T>,
): KindOf<Resource<Static<S>, Static<T>>> {
  const group = definition.group ?? 'management.platform.sh'
  const version = definition.version ?? 'v1'
  return {
    shortNames: [],
    categories: [],
    verbs: allVerbs,
    hidden: [],
    writeOnly: [],
    sealed: [],
    textForms: {},
    alternatives: {},
    selectable: {},
    statusSubresource: false,
    subresources: {},
    generateNamePrefix: undefined,
    nameRule: 'subdomain',
    ownerOnly: false,
    allOrNothing: false,
    checkedWhole: false,
    keepsLastRead: false,
    stored: true,
    hasIdentity: false,
    served: true,
    columns: [],
    ...(definition as unknown as Partial<Kind> &
      Pick<Kind, 'kind' | 'plural' | 'singular' | 'namespaced' | 'description' | 'sample'>),
    group,
    version,
    apiVersion: group ? `${group}/${version}` : version,
    id: group ? `${definition.plural}.${group}` : definition.plural,
    spec: definition.spec as Schema | undefined,
    status: definition.status as Schema | undefined,
    fields: {
      ...(definition.fields as { readonly [name: string]: Schema } | undefined),
      ...(definition.spec ? { spec: definition.spec as Schema } : {}),
      ...(definition.status ? { status: definition.status as Schema } : {}),
    },
  }
}
