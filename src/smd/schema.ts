// Converts the JSON Schema of a kind to the shapes that field ownership needs.

import type { Json } from '../api/object.ts'
import { fieldElement, type PathElement } from './path-element.ts'

/** The part of a JSON Schema that field ownership uses. */
export type FieldSchema = {
  readonly type?: unknown
  readonly properties?: { readonly [name: string]: FieldSchema }
  readonly additionalProperties?: boolean | FieldSchema
  readonly items?: FieldSchema | readonly FieldSchema[]
  readonly default?: unknown
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: string
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

export type Scalar = 'string' | 'numeric' | 'boolean' | 'untyped'
export type Form = 'map' | 'scalar' | 'list'

/** Atomic lists are one value. In other lists, the keys identify an item, or its value if there are no keys. */
export type ListShape = { readonly atomic: boolean; readonly keys: readonly string[]; readonly item: Shape }
/** `fields`: the declared fields. `rest`: the shape of other keys; undefined if there are none. */
export type MapShape = {
  readonly atomic: boolean
  readonly fields: ReadonlyMap<string, Shape>
  /** Cached path elements of the fields. */
  readonly elements: ReadonlyMap<string, PathElement>
  readonly rest: Shape | undefined
}
/** The possible types of a value, and the default of an absent list key. */
export type Shape = {
  readonly map: MapShape | undefined
  readonly scalar: Scalar | undefined
  readonly list: ListShape | undefined
  readonly fallback: Json | undefined
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>()
const NOTHING: Shape = { map: undefined, scalar: undefined, list: undefined, fallback: undefined }

/** Any value, owned as a whole. */
const OPAQUE = recursive(self => ({
  ...NOTHING,
  scalar: 'untyped',
  list: { atomic: true, keys: [], item: self },
  map: { atomic: true, fields: NONE, elements: NONE, rest: self },
}))

/** Any value. Objects are owned by key, lists as a whole. */
export const FREE = recursive(self => ({
  ...NOTHING,
  scalar: 'untyped',
  list: { atomic: true, keys: [], item: OPAQUE },
  map: { atomic: false, fields: NONE, elements: NONE, rest: self },
}))

function recursive(make: (self: Shape) => Shape): Shape {
  const self: { -readonly [K in keyof Shape]: Shape[K] } = { ...NOTHING }
  return Object.assign(self, make(self))
}

const shapes = new WeakMap<FieldSchema, Shape>()

export function shapeOf(schema: FieldSchema): Shape {
  let shape = shapes.get(schema)
  if (shape === undefined) {
    shape = build(schema, false)
    shapes.set(schema, shape)
  }
  return shape
}

/** `open`: an ancestor preserves unknown fields, which applies to everything below it. */
function build(schema: FieldSchema, open: boolean): Shape {
  const keeps = open || schema['x-kubernetes-preserve-unknown-fields'] === true
  const fallback = schema.default as Json | undefined
  switch (schema.type) {
    case 'object':
      return { ...NOTHING, map: buildMap(schema, keeps), fallback }
    case 'array':
      return { ...NOTHING, list: buildList(schema, keeps), fallback }
    case 'string':
    case 'boolean':
      return { ...NOTHING, scalar: schema.type, fallback }
    case 'integer':
    case 'number':
      return { ...NOTHING, scalar: 'numeric', fallback }
    default:
      return { scalar: 'untyped', list: buildList(schema, keeps), map: buildMap(schema, keeps), fallback }
  }
}

function buildMap(schema: FieldSchema, open: boolean): MapShape {
  const names = Object.keys(schema.properties ?? {})
  const fields = new Map(names.map(name => [name, build(schema.properties?.[name] ?? {}, open)]))
  return {
    atomic: schema['x-kubernetes-map-type'] === 'atomic',
    fields,
    elements: new Map(names.map(name => [name, fieldElement(name)])),
    rest: buildRest(schema, open, names.length > 0),
  }
}

function buildRest(schema: FieldSchema, open: boolean, declares: boolean): Shape | undefined {
  const rest = schema.additionalProperties
  if (typeof rest === 'object') return build(rest, open)
  if (rest === undefined) return open || !declares ? FREE : undefined
  return rest ? FREE : undefined
}

function buildList(schema: FieldSchema, open: boolean): ListShape {
  const type = schema['x-kubernetes-list-type']
  const keys = type === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : []
  const items = schema.items
  const item = items === undefined || Array.isArray(items) ? OPAQUE : build(items as FieldSchema, open)
  return { atomic: type !== 'set' && type !== 'map', keys, item }
}

/** The form of a value: its own type if the shape allows it, else the first form of the shape. */
export function formOf(shape: Shape, value: Json): Form {
  if (Array.isArray(value)) {
    if (shape.list !== undefined) return 'list'
  } else if (typeof value === 'object') {
    if (value !== null && shape.map !== undefined) return 'map'
  } else if (shape.scalar !== undefined) {
    return 'scalar'
  }
  if (shape.map !== undefined) return 'map'
  return shape.scalar !== undefined ? 'scalar' : 'list'
}

/** The shape of a map key. Validation rejects undeclared keys, so these occur in free maps only. */
export function shapeAt(map: MapShape, key: string): Shape {
  return map.fields.get(key) ?? map.rest ?? FREE
}

/** The path element of a map's key. */
export function elementAt(map: MapShape, key: string): PathElement {
  return map.elements.get(key) ?? fieldElement(key)
}
