// What changed between two values of one shape, as sets of fields: how an update learns what it has taken, for managed-fields and merge-apply.

import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { draftFieldSet, type FieldSet, type FieldSetDraft, insert, isEmpty } from './field-set.ts'
import type { PathElement } from './path-element.ts'
import { elementAt, type Form, formOf, type ListShape, type MapShape, type Shape, shapeAt } from './schema.ts'
import { groupItems } from './typed.ts'

/** No path is in two of the sets; all are empty when the values say the same. Items that merely moved are no change. */
export type Comparison = { readonly added: FieldSet; readonly modified: FieldSet; readonly removed: FieldSet }

type Walk = {
  readonly path: PathElement[]
  readonly added: FieldSetDraft
  readonly modified: FieldSetDraft
  readonly removed: FieldSetDraft
}

export function compareTyped(shape: Shape, before: Json, after: Json): Comparison {
  const walk: Walk = { path: [], added: draftFieldSet(), modified: draftFieldSet(), removed: draftFieldSet() }
  if (before !== after) compare(shape, before, after, walk)
  return walk
}

export function isNoChange(comparison: Comparison): boolean {
  return isEmpty(comparison.added) && isEmpty(comparison.modified) && isEmpty(comparison.removed)
}

/** At least one of the two is there. Containers that come or go are changes themselves, besides what they hold. */
function compare(shape: Shape, before: Json | undefined, after: Json | undefined, walk: Walk): void {
  const form = formOf(shape, after === undefined ? before! : after)
  // Where any form is allowed a value may turn from one into another: what it was goes, then what it is comes.
  const was = before === undefined || after === undefined ? form : formOf(shape, before)
  if (was !== form) visit(was, shape, before, after, walk)
  const isLeaf = visit(form, shape, before, after, walk)
  if (isLeaf) return
  if (before === undefined) insert(walk.added, walk.path)
  else if (after === undefined) insert(walk.removed, walk.path)
}

/** True when the value was taken as one, and so is already reported. */
function visit(form: Form, shape: Shape, before: Json | undefined, after: Json | undefined, walk: Walk): boolean {
  if (form === 'scalar') return compareLeaf(before, after, walk)
  if (form === 'map') {
    const left = isObject(before) ? before : undefined
    const right = isObject(after) ? after : undefined
    if (shape.map!.atomic || (isBare(left) && isBare(right))) return compareLeaf(before, after, walk)
    compareMaps(shape.map!, left, right, walk)
    return false
  }
  const left = Array.isArray(before) ? (before as readonly Json[]) : []
  const right = Array.isArray(after) ? (after as readonly Json[]) : []
  // Two empty ones are compared as values: `[]`, `{}` and null are not the same.
  if (shape.list!.atomic || left.length + right.length === 0) return compareLeaf(before, after, walk)
  compareItems(shape.list!, left, right, walk)
  return false
}

function isBare(map: JsonObject | undefined): boolean {
  if (map === undefined) return true
  for (const key in map) if (Object.hasOwn(map, key)) return false
  return true
}

function compareLeaf(before: Json | undefined, after: Json | undefined, walk: Walk): true {
  if (before === undefined) insert(walk.added, walk.path)
  else if (after === undefined) insert(walk.removed, walk.path)
  else if (!isEqual(before, after)) insert(walk.modified, walk.path)
  return true
}

function compareMaps(map: MapShape, left: JsonObject | undefined, right: JsonObject | undefined, walk: Walk): void {
  for (const key in left) {
    if (!Object.hasOwn(left, key) || left[key] === undefined) continue
    const after = right !== undefined && Object.hasOwn(right, key) ? right[key] : undefined
    if (after === left[key]) continue
    walk.path.push(elementAt(map, key))
    compare(shapeAt(map, key), left[key], after, walk)
    walk.path.pop()
  }
  for (const key in right) {
    if (!Object.hasOwn(right, key) || right[key] === undefined) continue
    if (left !== undefined && Object.hasOwn(left, key) && left[key] !== undefined) continue
    walk.path.push(elementAt(map, key))
    compare(shapeAt(map, key), undefined, right[key], walk)
    walk.path.pop()
  }
}

function compareItems(list: ListShape, left: readonly Json[], right: readonly Json[], walk: Walk): void {
  if (isEqual(left, right)) return
  const before = groupItems(list, left)
  const after = groupItems(list, right)
  for (const [element, was] of before) compareGroup(list, element, was, after.get(element) ?? [], walk)
  for (const [element, is] of after) if (!before.has(element)) compareGroup(list, element, [], is, walk)
}

/** Items of one identity. Repeats have no fields of their own, so several on either side count as one value. */
function compareGroup(
  list: ListShape,
  element: PathElement,
  was: readonly Json[],
  is: readonly Json[],
  walk: Walk,
): void {
  walk.path.push(element)
  if (was.length <= 1 && is.length <= 1) {
    compare(list.item, was[0], is[0], walk)
  } else if (was.length > 1 && is.length > 1) {
    if (!isEqual(was, is)) insert(walk.modified, walk.path)
  } else if (was.length > 1) {
    if (is.length === 1) compare(list.item, undefined, is[0], walk)
    insert(walk.removed, walk.path)
  } else {
    if (was.length === 1) compare(list.item, was[0], undefined, walk)
    insert(walk.added, walk.path)
  }
  walk.path.pop()
}

/** Deep equality of JSON; an undefined property is no property. */
export function isEqual(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => isEqual(item, b[index]))
  }
  if (!isObject(a) || !isObject(b)) return false
  let left = 0
  for (const key in a) {
    if (!Object.hasOwn(a, key) || a[key] === undefined) continue
    if (!Object.hasOwn(b, key) || !isEqual(a[key], b[key])) return false
    left++
  }
  for (const key in b) if (Object.hasOwn(b, key) && b[key] !== undefined) left--
  return left === 0
}
