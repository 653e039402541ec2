// A fast path for field ownership: most writes keep the fields of an object, or create one with the fields of the last one.

import { isObject, type Json, type JsonObject, type ManagedFieldsEntry } from '../api/object.ts'
import { isEqual } from './compare.ts'
import type { FieldPath } from './field-set.ts'
import type { PathElement } from './path-element.ts'
import { elementAt, formOf, type MapShape, type Shape, shapeAt } from './schema.ts'

/** The fields with different values; undefined if the two have different fields, or if it is too costly to decide. */
export function changedFields(shape: Shape, before: Json, after: Json): readonly FieldPath[] | undefined {
  const changed: FieldPath[] = []
  return sameFields(shape, before, after, [], changed) ? changed : undefined
}

/** Whether two values have the same fields, whatever their values. */
export const hasSameFields = (shape: Shape, one: Json, other: Json): boolean =>
  sameFields(shape, one, other, undefined, undefined)

function sameFields(
  shape: Shape,
  before: Json,
  after: Json,
  path: PathElement[] | undefined,
  changed: FieldPath[] | undefined,
): boolean {
  if (before === after) return true
  if (before === null || after === null || typeof before !== typeof after) return false
  // Most fields are a string, a number or a boolean.
  if (typeof after !== 'object' && shape.scalar !== undefined) {
    if (changed && path) changed.push([...path])
    return true
  }
  const form = formOf(shape, after)
  if (formOf(shape, before) !== form) return false
  if (form === 'scalar' || shape[form]?.atomic) {
    if (changed && path && !isEqual(before, after)) changed.push([...path])
    return true
  }
  // Values identify list items, and an empty list is a value.
  if (form === 'list' || !isObject(before) || !isObject(after)) return isEqual(before, after)
  return sameKeys(shape.map as MapShape, before, after, path, changed)
}

function sameKeys(
  map: MapShape,
  before: JsonObject,
  after: JsonObject,
  path: PathElement[] | undefined,
  changed: FieldPath[] | undefined,
): boolean {
  let count = 0
  for (const key in before) {
    if (!Object.hasOwn(before, key) || before[key] === undefined) continue
    const next = Object.hasOwn(after, key) ? after[key] : undefined
    if (next === undefined) return false
    count++
    if (next === before[key]) continue
    path?.push(elementAt(map, key))
    if (!sameFields(shapeAt(map, key), before[key] as Json, next, path, changed)) return false
    path?.pop()
  }
  for (const key in after) if (Object.hasOwn(after, key) && after[key] !== undefined) count--
  return count === 0
}

/**
 * The fields of a value without their values, so that the cache contains no secrets. Keeps values that are part of a
 * path.
 */
export function skeletonOf(shape: Shape, value: Json): Json {
  const form = formOf(shape, value)
  if (value === null) return null
  if (form === 'scalar') return typeof value === 'string' ? '' : typeof value === 'number' ? 0 : true
  if (form === 'list') return shape.list?.atomic ? [] : value
  if (!isObject(value) || shape.map?.atomic) return {}
  const bare: { [key: string]: Json } = Object.create(null)
  for (const key of Object.keys(value))
    if (value[key] !== undefined) bare[key] = skeletonOf(shapeAt(shape.map as MapShape, key), value[key] as Json)
  return bare
}

/** Whether a stored entry contains this path. */
export function hasPath(entry: ManagedFieldsEntry, path: FieldPath): boolean {
  const node = nodeAt(entry, path)
  return node !== undefined && (Object.hasOwn(node, '.') || isBare(node))
}

/** Whether a stored entry contains this path or one below it. */
export const isAbout = (entry: ManagedFieldsEntry, path: FieldPath): boolean => nodeAt(entry, path) !== undefined

/** The next change removes such an entry. */
export const ownsNothing = ({ fieldsV1 }: ManagedFieldsEntry): boolean => !isObject(fieldsV1) || isBare(fieldsV1)

function nodeAt({ fieldsV1 }: ManagedFieldsEntry, path: FieldPath): JsonObject | undefined {
  let node: Json | undefined = fieldsV1
  for (const element of path) {
    if (!isObject(node) || !Object.hasOwn(node, element)) return undefined
    node = node[element]
  }
  return isObject(node) ? node : undefined
}

const isBare = (node: JsonObject) => Object.keys(node).length === 0
