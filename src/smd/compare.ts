// Compares two values of one schema, and returns the added, modified and removed fields.

import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { draftFieldSet, type FieldSet, type FieldSetDraft, insert, isEmpty } from './field-set.ts'
import type { PathElement } from './path-element.ts'
import { elementAt, type Form, formOf, type ListShape, type MapShape, type Shape, shapeAt } from './schema.ts'
import { groupItems } from './typed.ts'

/** The sets are disjoint, and empty if the values are equal. A moved item is not a change. */
export type Comparison = { readonly added: FieldSet; readonly modified: FieldSet; readonly removed: FieldSet }

type Draft = {
  readonly path: PathElement[]
  readonly added: FieldSetDraft
  readonly modified: FieldSetDraft
  readonly removed: FieldSetDraft
}

export function compareTyped(shape: Shape, before: Json, after: Json): Comparison {
  const draft: Draft = { path: [], added: draftFieldSet(), modified: draftFieldSet(), removed: draftFieldSet() }
  if (before !== after) compare(shape, before, after, draft)
  return draft
}

export function isNoChange(comparison: Comparison): boolean {
  return isEmpty(comparison.added) && isEmpty(comparison.modified) && isEmpty(comparison.removed)
}

/**
 * At least one of the two is defined. An added or removed container is a change itself, in addition to its contents.
 */
function compare(shape: Shape, before: Json | undefined, after: Json | undefined, draft: Draft): void {
  const form = formOf(shape, after === undefined ? before! : after)
  // A value may change its type if the schema allows any type. Then the old fields are removed and the new ones
  // added.
  const was = before === undefined || after === undefined ? form : formOf(shape, before)
  if (was !== form) visit(was, shape, before, after, draft)
  const isLeaf = visit(form, shape, before, after, draft)
  if (isLeaf) return
  if (before === undefined) insert(draft.added, draft.path)
  else if (after === undefined) insert(draft.removed, draft.path)
}

/** True if the value is atomic and already reported. */
function visit(form: Form, shape: Shape, before: Json | undefined, after: Json | undefined, draft: Draft): boolean {
  if (form === 'scalar') return compareLeaf(before, after, draft)
  if (form === 'map') {
    const left = isObject(before) ? before : undefined
    const right = isObject(after) ? after : undefined
    if (shape.map!.atomic || (isBare(left) && isBare(right))) return compareLeaf(before, after, draft)
    compareMaps(shape.map!, left, right, draft)
    return false
  }
  const left = Array.isArray(before) ? (before as readonly Json[]) : []
  const right = Array.isArray(after) ? (after as readonly Json[]) : []
  // Two empty lists are compared as values, because `[]`, `{}` and null differ.
  if (shape.list!.atomic || left.length + right.length === 0) return compareLeaf(before, after, draft)
  compareItems(shape.list!, left, right, draft)
  return false
}

function isBare(map: JsonObject | undefined): boolean {
  if (map === undefined) return true
  for (const key in map) if (Object.hasOwn(map, key)) return false
  return true
}

function compareLeaf(before: Json | undefined, after: Json | undefined, draft: Draft): true {
  if (before === undefined) insert(draft.added, draft.path)
  else if (after === undefined) insert(draft.removed, draft.path)
  else if (!isEqual(before, after)) insert(draft.modified, draft.path)
  return true
}

function compareMaps(map: MapShape, left: JsonObject | undefined, right: JsonObject | undefined, draft: Draft): void {
  for (const key in left) {
    if (!Object.hasOwn(left, key) || left[key] === undefined) continue
    const after = right !== undefined && Object.hasOwn(right, key) ? right[key] : undefined
    if (after === left[key]) continue
    draft.path.push(elementAt(map, key))
    compare(shapeAt(map, key), left[key], after, draft)
    draft.path.pop()
  }
  for (const key in right) {
    if (!Object.hasOwn(right, key) || right[key] === undefined) continue
    if (left !== undefined && Object.hasOwn(left, key) && left[key] !== undefined) continue
    draft.path.push(elementAt(map, key))
    compare(shapeAt(map, key), undefined, right[key], draft)
    draft.path.pop()
  }
}

function compareItems(list: ListShape, left: readonly Json[], right: readonly Json[], draft: Draft): void {
  if (isEqual(left, right)) return
  const before = groupItems(list, left)
  const after = groupItems(list, right)
  for (const [element, was] of before) compareGroup(list, element, was, after.get(element) ?? [], draft)
  for (const [element, is] of after) if (!before.has(element)) compareGroup(list, element, [], is, draft)
}

/**
 * Items with the same identity. Duplicates have no fields of their own, so several on either side count as one value.
 */
function compareGroup(
  list: ListShape,
  element: PathElement,
  was: readonly Json[],
  is: readonly Json[],
  draft: Draft,
): void {
  draft.path.push(element)
  if (was.length <= 1 && is.length <= 1) {
    compare(list.item, was[0], is[0], draft)
  } else if (was.length > 1 && is.length > 1) {
    if (!isEqual(was, is)) insert(draft.modified, draft.path)
  } else if (was.length > 1) {
    if (is.length === 1) compare(list.item, undefined, is[0], draft)
    insert(draft.removed, draft.path)
  } else {
    if (was.length === 1) compare(list.item, was[0], undefined, draft)
    insert(draft.added, draft.path)
  }
  draft.path.pop()
}

/** Deep equality of JSON. An undefined property is the same as an absent one. */
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
