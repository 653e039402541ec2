// What a kind is: one record of data and pure rules. src/kinds defines them. Rules that need more are in admission.ts.

import type { Caller } from './caller.ts'
import type { FieldError } from './errors.ts'
import type { Grant } from './grant.ts'
import type { JsonObject, Resource } from './object.ts'
import type { Right, Who } from './permissions.ts'
import type { Schema, Static, TSchema } from './schema.ts'

export type { Question, Right, Who } from './permissions.ts'

export type Verb = 'create' | 'get' | 'list' | 'watch' | 'update' | 'patch' | 'delete' | 'deletecollection'
const allVerbs: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

/** A column of `kubectl get`. The server adds Name and Age. A priority above 0 shows with -o wide only. */
export type Column = {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly description: string
  readonly priority?: number
  readonly value: (object: Resource) => string | number | boolean | undefined
}

/** Rules of a kind. All of them are pure. */
type PureRules<O extends Resource> = {
  /** Permissions that the object itself gives, such as those of its owner. */
  readonly rights?: (object: O, who: Who) => readonly Right[]
  /** Terms (candidates.ts) of everybody to whom `rights` can give a permission. Filtered lists find objects by them. */
  readonly readers?: (object: O) => readonly string[]
  /** Sets defaults that follow from the object itself. */
  readonly prepare?: (next: O, old: O | undefined) => O
  /** Sets defaults that follow from the caller, such as the owner. */
  readonly assign?: (next: O, old: O | undefined, caller: Caller) => O
  /** What the object gives to whom. The gate rejects a write that grants what its caller does not hold (D60). */
  readonly grants?: (object: O) => readonly Grant[]
  /** Checks beyond the schema. Returns all errors, not the first. */
  readonly validate?: (next: O, old: O | undefined) => readonly FieldError[]
  /** Adds data that is stored separately, such as the last activity (D19), whenever the object is shown. */
  readonly join?: (object: O, lastActivity: (id: string) => number | undefined) => O
}

/** A subresource of one object. `get` returns something about it, `create` may change it. Its handler is in the admission of the kind. */
export type Subresource = {
  readonly verb: 'get' | 'create'
  /** Kind of the response, for discovery. */
  readonly kind: string
  /** Whether a further segment of the path names a part of it, as in history/3. */
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
  /** Dotted paths. Responses never contain hidden fields, the store never contains write-only fields, and sealed fields are encrypted at rest. */
  readonly hidden: readonly string[]
  readonly writeOnly: readonly string[]
  readonly sealed: readonly string[]
  readonly subresources: { readonly [name: string]: Subresource }
  /** Whether `/status` is served (D9). */
  readonly statusSubresource: boolean
  /** A create without a name gets a generated name with this prefix (D24). */
  readonly generateNamePrefix: string | undefined
  /** Only the owner and administrators of the kind (verb *) see and change an object. Others get a 404 (D15). */
  readonly ownerOnly: boolean
  /** A partial list would mislead: callers who may not list all objects get a 403, not the objects they may get (D27). */
  readonly allOrNothing: boolean
  /** The gate checks every grant on every write, as Kubernetes does for roles and bindings (D60). */
  readonly checkedWhole: boolean
  /** How names are checked: as DNS subdomains, or as any segment of a path, as the RBAC kinds allow. */
  readonly nameRule: 'subdomain' | 'segment'
  /** The server records when somebody last read an object with its data (D35). */
  readonly keepsLastRead: boolean
  readonly stored: boolean
  readonly served: boolean
  readonly columns: readonly Column[]
  /** A valid object of the kind, for the documentation and the conformance suite. */
  readonly sample: JsonObject
}

export type Kind = Names &
  PureRules<Resource> & {
    readonly apiVersion: string
    /** Identifies the kind, such as `teams.management.platform.sh`. */
    readonly id: string
    readonly spec: Schema | undefined
    readonly status: Schema | undefined
    /** All fields except metadata; spec and status included. */
    readonly fields: { readonly [name: string]: Schema }
  }

/** A kind with the type of its objects. `shape` is for the compiler only and never set. */
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
  | 'statusSubresource'
  | 'subresources'
  | 'generateNamePrefix'
  | 'nameRule'
  | 'ownerOnly'
  | 'allOrNothing'
  | 'checkedWhole'
  | 'keepsLastRead'
  | 'stored'
  | 'served'
  | 'columns'

export type Definition<S extends TSchema, T extends TSchema> = Omit<Names, Optional> &
  Partial<Pick<Names, Optional>> &
  PureRules<Resource<Static<S>, Static<T>>> & {
    readonly spec?: S
    readonly status?: T
    readonly fields?: { readonly [name: string]: TSchema }
  }

/** Defines a kind. The defaults are what most kinds want. */
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
    statusSubresource: false,
    subresources: {},
    generateNamePrefix: undefined,
    nameRule: 'subdomain',
    ownerOnly: false,
    allOrNothing: false,
    checkedWhole: false,
    keepsLastRead: false,
    stored: true,
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
