// Removes fields from a value, and adapts field sets to a schema before that.

import { emptyMap, isObject, type Json, type JsonObject } from '../api/object.ts'
import { below, type FieldSet, isEmpty, LEAF, rebuild } from './field-set.ts'
import { fieldElement, type PathElement } from './path-element.ts'
import { FREE, formOf, type ListShape, type MapShape, type Shape, shapeAt } from './schema.ts'
import { elementOf } from './typed.ts'

/**
 * The value without the fields and items of the set. A container that becomes empty and is not in the set stays: as
 * null, which `fieldsOf` still counts, or with `hollow` as an empty value that can be stored.
 */
export function removeFields(shape: Shape, value: Json, set: FieldSet, options: { readonly hollow: boolean }): Json {
  const form = formOf(shape, value)
  if (form === 'scalar') return value
  if (form === 'map') {
    if (!isObject(value) || shape.map!.atomic) return null
    const kept = keepMap(shape.map!, value, set, options)
    return Object.keys(kept).length > 0 || options.hollow ? kept : null
  }
  if (!Array.isArray(value) || shape.list!.atomic) return null
  const kept = keepItems(shape.list!, value, set, options)
  return kept.length > 0 || options.hollow ? kept : null
}

function keepMap(map: MapShape, value: JsonObject, set: FieldSet, options: { readonly hollow: boolean }): JsonObject {
  const kept = emptyMap()
  for (const key of Object.keys(value)) {
    const child = value[key]
    const gone = below(set, fieldElement(key))
    if (child === undefined || gone.owned) continue
    kept[key] = isEmpty(gone) ? child : removeFields(shapeAt(map, key), child, gone, options)
  }
  return kept
}

function keepItems(
  list: ListShape,
  items: readonly Json[],
  set: FieldSet,
  options: { readonly hollow: boolean },
): Json[] {
  const kept: Json[] = []
  for (const item of items) {
    const gone = below(set, elementOf(list, item))
    if (gone.owned) continue
    kept.push(isEmpty(gone) ? item : removeFields(list.item, item, gone, options))
  }
  return kept
}

/** Adds the declared fields on the way to each path: `a.b` also adds `a` if `a` is a field and not a map key. */
export function withNamedFields(set: FieldSet, shape: Shape | undefined): FieldSet {
  return rebuild(set, set.owned, (element, child) => {
    const inner = withNamedFields(child, shapeBelow(shape, element))
    const isNamed = element[0] === 'f' && shape?.map?.fields.has(element.slice(2)) === true
    return isNamed && !inner.owned && inner.children.size > 0 ? { owned: true, children: inner.children } : inner
  })
}

function shapeBelow(shape: Shape | undefined, element: PathElement): Shape | undefined {
  if (element[0] === 'f') return shape?.map && (shape.map.fields.get(element.slice(2)) ?? shape.map.rest)
  return element[0] === 'k' ? shape?.list?.item : undefined
}

/** Adapts ownership from an older schema: fields that have become atomic are owned as a whole. */
export function fitToSchema(set: FieldSet, shape: Shape): FieldSet {
  const { map, list } = shape
  const isAtomic = map === undefined ? shape.scalar === undefined && list?.atomic === true : map.atomic
  if (isAtomic) return set.children.size > 0 ? LEAF : set
  if (map !== undefined) {
    if (map.rest === FREE && map.fields.size === 0) return set
    return rebuild(set, set.owned, (element, child) => {
      const inner = element[0] === 'f' ? (map.fields.get(element.slice(2)) ?? map.rest) : map.rest
      return inner === undefined ? child : fitToSchema(child, inner)
    })
  }
  if (shape.scalar !== undefined || list === undefined) return set
  return rebuild(set, set.owned, (_, child) => fitToSchema(child, list.item))
}
