// Most writes leave an object with the fields it had, or make one with the fields that the last one had. Then who owns what is
// known without working it out: managed-fields asks here first.

import { isObject, type Json, type JsonObject, type ManagedFieldsEntry } from '../api/object.ts'
import { isEqual } from './compare.ts'
import type { FieldPath } from './field-set.ts'
import type { PathElement } from './path-element.ts'
import { elementAt, formOf, type MapShape, type Shape, shapeAt } from './schema.ts'

/** The fields whose values differ; undefined: one of the two has a field that the other has not, or it is not plain to see. */
export function changedFields(shape: Shape, before: Json, after: Json): readonly FieldPath[] | undefined {
  const changed: FieldPath[] = []
  return sameFields(shape, before, after, [], changed) ? changed : undefined
}

/** Whether two values have the very same fields, whatever is in them. */
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
  const form = formOf(shape, after)
  if (formOf(shape, before) !== form) return false
  if (form === 'scalar' || shape[form]?.atomic) {
    if (changed && path && !isEqual(before, after)) changed.push([...path])
    return true
  }
  // Items are known by what is in them, and an empty list is a value of its own.
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

/** The fields of a value without what is in them, as far as that is not their name: nothing secret is kept in it. */
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

/** Whether an entry, as it is stored, has this very path. */
export function hasPath(entry: ManagedFieldsEntry, path: FieldPath): boolean {
  const node = nodeAt(entry, path)
  return node !== undefined && (Object.hasOwn(node, '.') || isBare(node))
}

/** Whether an entry says anything of this path or of what is below it. */
export const isAbout = (entry: ManagedFieldsEntry, path: FieldPath): boolean => nodeAt(entry, path) !== undefined

/** Such an entry goes with the next change. */
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
