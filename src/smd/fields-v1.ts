// FieldsV1, the JSON spelling of a field set: read from and written to `metadata.managedFields` by managed-fields.

import { type Draft, isObject, type JsonObject } from '../api/object.ts'
import { type FieldSet, LEAF, NO_FIELDS } from './field-set.ts'
import { type PathElement, readElement, sortElements } from './path-element.ts'

/** Deeper than any schema; a client's entry beyond it counts as unreadable instead of exhausting the stack. */
const DEEPEST = 200

/** Throws a SyntaxError when a key or value cannot be read. */
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
    // Elements of a kind we do not know are dropped, as a later version's.
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
  // No element can be spelled `__proto__`, so a plain object will do.
  const fields: Draft = {}
  if (set.children.size === 0) return fields
  if (set.owned) fields['.'] = {}
  for (const element of sortElements(set.children.keys())) {
    fields[element] = writeFieldsV1(set.children.get(element) ?? NO_FIELDS)
  }
  return fields
}
