// Encodes and decodes FieldsV1, the JSON format of field sets in `metadata.managedFields`.

import { type Draft, isObject, type JsonObject } from '../api/object.ts'
import { type FieldSet, LEAF, NO_FIELDS } from './field-set.ts'
import { type PathElement, readElement, sortElements } from './path-element.ts'

/** Deeper than any schema. Rejects deeper entries of a client, which would exhaust the stack. */
const DEEPEST = 200

/** Throws a SyntaxError if a key or value is invalid. */
export function readFieldsV1(fields: JsonObject): FieldSet {
  const children = readChildren(fields, 0)
  return children === undefined ? NO_FIELDS : { owned: false, children }
}

function readChildren(fields: JsonObject, depth: number): FieldSet['children'] | undefined {
  if (depth > DEEPEST) throw new SyntaxError('fields are nested too deeply')
  let children: Map<PathElement, FieldSet> | undefined
  for (const key of Object.keys(fields)) {
    if (key === '.') continue
    const element = readElement(key)
    // Drop unknown elements, which may come from a later version.
    if (element === undefined) continue
    children ??= new Map()
    children.set(element, readNode(fields[key], depth + 1))
  }
  return children
}

function readNode(value: unknown, depth: number): FieldSet {
  if (value === null) return LEAF
  if (!isObject(value)) throw new SyntaxError('expected an object')
  const children = readChildren(value, depth)
  if (children === undefined) return LEAF
  return { owned: Object.hasOwn(value, '.'), children }
}

export function writeFieldsV1(set: FieldSet): JsonObject {
  // A plain object is safe, because no element is spelled `__proto__`.
  const fields: Draft = {}
  if (set.children.size === 0) return fields
  if (set.owned) fields['.'] = {}
  for (const element of sortElements(set.children.keys())) {
    fields[element] = writeFieldsV1(set.children.get(element) ?? NO_FIELDS)
  }
  return fields
}
