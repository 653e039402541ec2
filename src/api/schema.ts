// Defines the schema builders of kinds.
// One schema gives types, validation, defaults, pruning, OpenAPI and explain.

import type { Static, TArray, TBoolean, TInteger, TProperties, TSchema, TString, TUnsafe } from 'typebox'

export type { Static, TSchema }

/** The properties of a schema: JSON Schema with the extensions of Kubernetes. */
export type Schema = {
  readonly type?: string
  readonly description?: string
  readonly format?: string
  readonly default?: unknown
  readonly deprecated?: boolean
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maxLength?: number
  readonly properties?: { readonly [name: string]: Schema }
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  /** The maximum number of items or members (D72). */
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'granular' | 'atomic'
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  /** Only for the server: absent from OpenAPI and unknown to clients. */
  readonly 'x-internal'?: boolean
  /** An unknown field is an error in every write, because a dropped one would lift a restriction (D25). */
  readonly 'x-closed'?: boolean
}

type Extra = Omit<Schema, 'type' | 'description' | 'properties' | 'items' | 'required'>

/** A schema is plain data. Only the types come from the library, because loading it takes too long for a command. */
const Type = {
  String: (more: object) => ({ type: 'string', ...more }) as unknown as TString,
  Boolean: (more: object) => ({ type: 'boolean', ...more }) as unknown as TBoolean,
  Integer: (more: object) => ({ type: 'integer', ...more }) as unknown as TInteger,
  Array: <T extends TSchema>(items: T, more: object) => ({ type: 'array', items, ...more }) as unknown as TArray<T>,
  Unsafe: <T>(schema: object) => schema as unknown as TUnsafe<T>,
}

/**
 * The maximum of characters in a name (D72), unless its schema has another one. V8 hashes strings of 16,384 and more characters by their length alone, so a Map of
 * many such names takes quadratic time. Indexes add prefixes and escape characters.
 */
export const maxNameLength = 2048

/** A name, an identifier, or an address. */
export const text = (description: string, extra: Extra = {}) =>
  Type.String({ description, maxLength: maxNameLength, ...extra })
/** Text for people or programs, which no index has as a key. Only the size of the object limits it. */
export const longText = (description: string, extra: Extra = {}) => Type.String({ description, ...extra })
export const flag = (description: string, extra: Extra = {}) => Type.Boolean({ description, ...extra })
/** A whole number of at most 2^53, the int64 of Kubernetes. */
export const integer = (description: string, extra: Extra = {}) =>
  Type.Integer({ description, format: 'int64', ...extra })
export const time = (description: string, extra: Extra = {}) =>
  Type.String({ description, format: 'date-time', ...extra })
export const oneOf = <const V extends string[]>(values: [...V], description: string, extra: Extra = {}) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: values, description, ...extra })

/** The default maximum of list items and map members, which limits the cost of a write (D72). */
const defaultMaxItems = 250

/** For server-side apply, a list is one value unless it declares the keys of its items (D23). */
export const list = <T extends TSchema>(items: T, description: string, extra: Extra = {}) =>
  Type.Array(items, { description, 'x-kubernetes-list-type': 'atomic', maxItems: defaultMaxItems, ...extra })
export const setOf = <T extends TSchema>(items: T, description: string, extra: Extra = {}) =>
  Type.Array(items, { description, 'x-kubernetes-list-type': 'set', maxItems: defaultMaxItems, ...extra })
export const mapList = <T extends TSchema>(items: T, keys: readonly string[], description: string) =>
  Type.Array(items, {
    description,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': keys,
    maxItems: defaultMaxItems,
  })

export const mapOf = <T extends TSchema>(values: T, description: string, extra: Extra = {}) =>
  Type.Unsafe<{ [key: string]: Static<T> }>({
    type: 'object',
    additionalProperties: values,
    description,
    maxProperties: defaultMaxItems,
    ...extra,
  })

/** For structs in which an absent field means "unrestricted". */
export const closed = { 'x-closed': true } as const

/** An object with optional fields; `needs` lists the required ones. */
export const struct = <P extends TProperties>(
  description: string,
  properties: P,
  needs: readonly (keyof P & string)[] = [],
  extra: Extra = {},
) =>
  Type.Unsafe<{ [K in keyof P]?: Static<P[K]> | undefined }>({
    type: 'object',
    description,
    properties,
    ...(needs.length ? { required: needs } : {}),
    ...extra,
  })
